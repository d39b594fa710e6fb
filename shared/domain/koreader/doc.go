// Package koreader syncs positions in books between devices with KOReader: its progress sync plugin uses an API key as
// user name and /koreader as server. A setting turns it on per tenant. KOReader identifies a book by a digest of its
// file, which package digest computes.
//
// Tables: reads koreader_digest and book; adds tasks.
package koreader
