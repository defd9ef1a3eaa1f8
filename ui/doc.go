// Package ui is the web UI: ES modules, style sheets and a page that loads them, as they stand in static/ and vendor/, embedded. There is
// no build step: what is edited is what runs.
//
// It talks HTTP to the API like any other client and knows nothing of it in Go. Handler serves the page under the paths of the UI, and the
// rest under assets/<hash>/, where the hash is that of all files together: browsers keep them forever and never mix two versions.
//
// Promises. Nothing is loaded from elsewhere. The policy allows no inline script or style and no way from text to code (Trusted Types).
// Everything works under any prefix of paths: the page's base says which. What is not the UI's is left to whoever comes next.
package ui
