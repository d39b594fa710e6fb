// Package health counts what a tenant has, and says which build answers.
//
// Tables: reads library, library_count and account.
package health
