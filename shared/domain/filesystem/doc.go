// Package filesystem lets administrators browse the folders that the operator gave their tenant: the roots, each an
// absolute path that stands for a bucket and a prefix of an S3 server, and what is below them. A "folder" is a common
// prefix. Paths outside the roots are rejected.
//
// Tables: reads library_root.
package filesystem
