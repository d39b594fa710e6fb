package sevenz

import "github.com/longbox/longbox/shared/format/archive"

// files reads the list of files and sets the location of each.
func (c *cursor) files(s *streamsInfo, size int64, lim archive.Limits) (*header, error) {
	n := c.number()
	if n > uint64(lim.Entries) {
		return nil, archive.Errorf(archive.TooLarge, "the archive has %d entries, the limit is %d", n, lim.Entries)
	}
	count := int(n)
	if count > len(c.b)+1 { // a name has at least two bytes
		return nil, errDamaged
	}
	l := c.list(count, lim)
	if c.beyond {
		return nil, archive.Errorf(archive.TooLarge, "a name in the archive has more characters than the limit of %d", lim.NameBytes)
	}
	if c.bad {
		return nil, errDamaged
	}
	h := &header{folders: s.folders, streams: s.streams, entries: make([]archive.Entry, count)}
	used := 0
	at := make([]int64, len(s.folders)) // position in each folder
	for i := range h.entries {
		e := &h.entries[i]
		const unixMode, link, folderAttribute = 0x8000, 0xa000, 0x10
		e.Symlink = l.attributes[i]&unixMode != 0 && l.attributes[i]>>16&0xf000 == link
		if l.empty[i] {
			e.Directory = !l.emptyFile[i] || l.attributes[i]&folderAttribute != 0
			e.Method = archive.Bare
			continue
		}
		if used == len(s.streams) {
			return nil, errDamaged
		}
		p := s.streams[used]
		f := s.folders[p.folder]
		e.Size, e.CRC32, e.Encrypted = p.size, p.crc, f.encrypted()
		e.Method, e.Offset = archive.SevenZip, int64(used)
		if f.stored() && f.size() == f.packed {
			e.Method, e.Offset, e.Length, e.CompressedSize = archive.Bare, f.offset+at[p.folder], p.size, p.size
		}
		at[p.folder] += p.size
		used++
	}
	archive.SetNames(h.entries, l.names)
	if err := archive.CheckSizes(h.entries, size, lim); err != nil {
		return nil, err
	}
	return h, h.checkPages(lim)
}

// list holds the properties of all files.
type list struct {
	names            []string
	empty, emptyFile []bool
	attributes       []uint32
}

// list reads the properties of count files.
func (c *cursor) list(count int, lim archive.Limits) list {
	l := list{make([]string, count), make([]bool, count), make([]bool, count), make([]uint32, count)}
	for !c.bad {
		id := c.byte()
		if id == idEnd {
			break
		}
		p := &cursor{b: c.take(c.number())}
		switch id {
		case idEmptyStream:
			l.empty = p.bits(count)
		case idEmptyFile:
			var which []int
			for i, e := range l.empty {
				if e {
					which = append(which, i)
				}
			}
			for i, e := range p.bits(len(which)) {
				l.emptyFile[which[i]] = e
			}
		case idNames:
			p.bad = p.byte() != 0
			for i := range l.names {
				if p.bad {
					break
				}
				l.names[i] = p.name(lim.NameBytes)
			}
		case idAttributes:
			defined := p.defined(count)
			p.bad = p.bad || p.byte() != 0
			for i, ok := range defined {
				if !ok {
					continue
				}
				if b := p.take(4); b != nil {
					l.attributes[i] = le.Uint32(b)
				}
			}
		}
		c.bad, c.beyond = c.bad || p.bad, c.beyond || p.beyond
	}
	return l
}

// checkPages refuses an archive with unsupported pages, by its headers alone.
func (h *header) checkPages(lim archive.Limits) error {
	for _, p := range archive.Pages(h.entries) {
		if p.Method != archive.SevenZip || p.Encrypted {
			continue
		}
		if err := h.folders[h.streams[p.Offset].folder].check(lim); err != nil {
			return err
		}
	}
	return nil
}
