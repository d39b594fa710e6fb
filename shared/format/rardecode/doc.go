// Package rardecode reads RAR archives. It is a copy of github.com/nwaples/rardecode/v2 v2.4.6 (LICENSE is its
// licence), since what a hostile archive may ask for has no bound there. What differs:
//
//   - Programs for the VM of RAR 3 and 4 do not run (vm.go is left out): as in unrar since version 5, a filter is one
//     of the six that packers write, told by its checksum, or ErrInvalidFilter. Thousands of programs of 25 million
//     steps each could stand in one block.
//   - The standard filters take what unrar takes: up to 256 KiB at a time (4 MiB in RAR 5), in up to 1024 (delta) or
//     128 (audio) channels. No data passes through more than 16 filters.
//   - The limit for dictionaries bounds the models of PPM too, at the beginning of every block, and one of the same
//     size takes no new memory.
//   - A negative size of a file's data, an empty service block of RAR 4, a damaged model of PPM, and going on after a
//     block of RAR 4 that could not begin are errors instead of a panic.
//   - Archives in several volumes, passwords and io/fs are left out, and what headers say of times, owners, links and
//     operating systems: a damaged record of these does not matter.
//   - DecodeName is exported, for package rar.
//   - Reader has only Read and Next. WriteTo, ReadByte, Reset, seeking and options are left out (bufio.go, volume.go).
//     An archive begins with its signature, which is not searched for behind the program of a self-extracting file.
package rardecode
