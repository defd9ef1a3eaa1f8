// Package quickack has the kernel acknowledge TCP segments immediately.
//
// The kernel may delay an acknowledgement by 40 ms, because the answer of a program could carry it.
// A peer that leaves Nagle's algorithm on waits for it: it sends a small segment only when all that
// it sent before is acknowledged. A client that mostly reads then gets its records 40 ms late.
// LavinMQ is such a peer, unless its configuration says otherwise.
package quickack
