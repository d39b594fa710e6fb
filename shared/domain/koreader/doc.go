// Package koreader lets KOReader keep the place in a book in step between devices: its progress sync plugin, with an
// API key as user name and /koreader as the server. A tenant turns it on by a setting. KOReader names a book by a
// digest of its file, which package digest makes.
//
// Tables: reads koreader_digest and book; adds tasks.
package koreader
