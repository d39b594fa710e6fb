// Package health reports what a tenant has, and the version of the server.
//
// Tables: reads library, library_count and account.
package health
