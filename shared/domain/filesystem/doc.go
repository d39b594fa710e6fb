// Package filesystem shows administrators the folders that the operator gave their tenant: roots, each an
// absolute path that stands for a bucket and a prefix of an S3 server, and what lies below them. A "folder" is a
// common prefix. Nothing outside the roots can be named.
//
// Tables: reads library_root.
package filesystem
