// Package ui is the web UI: ES modules, style sheets and a page that loads them, embedded from
// static/ and vendor/. There is no build step: the files in the tree are the files that run.
//
// The UI uses the HTTP API like any other client, and no Go package of Millrace. Handler serves the
// page at the paths of the UI. It serves the other files at assets/<hash>/, where the hash covers
// all files together. So browsers keep the files forever and never mix two versions.
//
// # Promises
//
//   - The page loads nothing from other hosts.
//   - The Content-Security-Policy allows no inline script or style, and no conversion of text to
//     code (Trusted Types).
//   - Everything works below any path prefix, which the page has as its base.
//   - Handler passes requests for all other paths to the next handler.
package ui
