// Package table has what the folds of package tracker and below it share: keys that sort like the
// numbers in them, a codec for values, and tables that forget their oldest rows.
//
// Nothing here knows what a row means. The bytes are those of the stores that exist: another layout
// needs another version of the schema.
package table
