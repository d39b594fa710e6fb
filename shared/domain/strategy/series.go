package strategy

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/longbox/longbox/shared/format/naming"
	"github.com/longbox/longbox/shared/lazyregexp"
	"github.com/longbox/longbox/shared/platform/fault"
)

// series finds the series of a file by one of six strategies.
type series struct {
	place func(key string) Place
	alone bool // package documents beside books are not read
}

func newSeries(name string, c *config) (series, []fault.Field) {
	var s series
	switch name {
	case "series_volume":
		s.place = byFolder
	case "series_volume_chapter":
		s.place = byFirstFolder
	case "flat":
		s = flat(c)
	case "publisher_hierarchy":
		s = hierarchy(c)
	case "calibre":
		s = calibre(c)
	case "custom":
		s = custom(c)
	default:
		return s, []fault.Field{{Field: "seriesStrategy",
			Message: "must be series_volume, series_volume_chapter, flat, publisher_hierarchy, calibre or custom"}}
	}
	return s, c.bad
}

// named returns the path of a series without a folder of its own.
func named(name string) string {
	return "/" + strings.ReplaceAll(naming.Normalize(name), "/", "-")
}

func folders(key string) []string {
	dir := path.Dir(key)
	if dir == "." {
		return nil
	}
	return strings.Split(dir, "/")
}

// alone puts a file into a series of its own, if neither a folder nor a name does otherwise.
func alone(key string) Place { return Place{Path: key, Name: stem(key)} }

// byFolder uses the file's folder. Folders with the same name in different places are different series.
func byFolder(key string) Place {
	dir := folders(key)
	if len(dir) == 0 {
		return alone(key)
	}
	return Place{Path: path.Dir(key), Name: dir[len(dir)-1]}
}

// byFirstFolder uses the first folder; a deeper one may name a volume.
func byFirstFolder(key string) Place {
	dir := folders(key)
	if len(dir) == 0 {
		return alone(key)
	}
	p := Place{Path: dir[0], Name: dir[0]}
	for _, label := range dir[1:] {
		if v := volumeLabel(label); v != nil {
			p.Volume = v
		}
	}
	return p
}

// volumeLabel parses "Volume 03", "第3巻" or "03". Of "Volumes 01-10", no book has one volume.
func volumeLabel(folder string) *int {
	if n, err := strconv.Atoi(folder); err == nil && n >= 0 && len(folder) <= 4 {
		return &n
	}
	name := naming.Detect(folder + ".cbz") // with an extension, so that the name is not cut at its last dot
	if name.VolumeTo != nil {
		return nil
	}
	return name.Volume
}

var defaultPatterns = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{regexp.MustCompile(`\[([^\]]+)\]`), regexp.MustCompile(`^([^-]+) -`), regexp.MustCompile(`^([^_]+)_`)}
})

// flat uses group 1 of the first pattern that matches the file name; else the metadata's series; else the words before
// the first number.
func flat(c *config) series {
	patterns, list, require := defaultPatterns(), []string(nil), false
	if c.read("filenamePatterns", &list, "an array of regular expressions") && list != nil {
		patterns = c.patterns("filenamePatterns", list)
		for i, re := range patterns {
			if re.NumSubexp() == 0 {
				c.fail("filenamePatterns["+strconv.Itoa(i)+"]", "needs a group in parentheses: the name of the series")
			}
		}
	}
	c.read("requireMetadata", &require, "true or false")
	place := func(key string) Place {
		name := stem(key)
		for _, re := range patterns {
			if require {
				break
			}
			if m := re.FindStringSubmatch(name); m != nil && strings.TrimSpace(m[1]) != "" {
				found := strings.TrimSpace(m[1])
				return Place{Path: named(found), Name: found}
			}
		}
		p := alone(key)
		if found := naming.Detect(key).Series; found != "" && !require {
			p = Place{Path: named(found), Name: found}
		}
		p.Later = true
		return p
	}
	return series{place: place}
}

// bySeries moves a book to the series in its metadata.
func bySeries(p Place, meta *Meta) Place {
	if name := strings.TrimSpace(meta.Series); name != "" {
		p.Path, p.Name = named(name), name
	}
	return p
}

// hierarchy skips the first folders, which name the publisher; below them it works like byFolder.
func hierarchy(c *config) series {
	depth, store := 1, "publisher"
	c.read("skipDepth", &depth, "a whole number")
	if depth < 0 || depth > maxDepth {
		c.fail("skipDepth", "must be 0 to %d folders", maxDepth)
	}
	if string(c.members["storeSkippedAs"]) == "null" {
		store = ""
	}
	c.read("storeSkippedAs", &store, "the name of a field, for example publisher, or null")
	if len(store) > 50 || store != "" && !fieldName.MatchString(store) {
		c.fail("storeSkippedAs", "must be a name of at most 50 letters, digits and underscores")
	}
	return series{place: func(key string) Place {
		p := byFolder(key)
		dir := folders(key)
		skipped := dir[:min(depth, len(dir))]
		if len(skipped) == len(dir) {
			p = alone(key)
		}
		if value := naming.Line(strings.Join(skipped, " / ")); value != "" {
			switch store {
			case "":
			case "publisher":
				p.Publisher = value
			case "imprint":
				p.Imprint = value
			default:
				p.Extra = map[string]string{store: value}
			}
		}
		return p
	}}
}

var fieldName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]*$`)

var idSuffix = lazyregexp.New(`\s*\(\d+\)$`)

// calibre expects Author/Title (id)/files.
func calibre(c *config) series {
	strip, packages, fromFolder, mode := true, true, true, "standalone"
	c.read("stripIdSuffix", &strip, "true or false")
	c.read("readOpfMetadata", &packages, "true or false")
	c.read("authorFromFolder", &fromFolder, "true or false")
	c.read("seriesMode", &mode, "standalone, by_author or from_metadata")
	if !slices.Contains([]string{"standalone", "by_author", "from_metadata"}, mode) {
		c.fail("seriesMode", "must be standalone, by_author or from_metadata")
	}
	place := func(key string) Place {
		dir := folders(key)
		if len(dir) == 0 {
			return alone(key)
		}
		author, title, at := "", dir[0], 1
		if len(dir) > 1 {
			author, title, at = dir[0], dir[1], 2
		}
		if strip {
			if short := idSuffix.ReplaceAllString(title, ""); short != "" {
				title = short
			}
		}
		p := Place{Path: strings.Join(dir[:at], "/"), Name: title, Later: mode == "from_metadata"}
		if mode == "by_author" && author != "" {
			p.Path, p.Name = author, author
		}
		if fromFolder {
			p.Author = naming.Line(author)
		}
		return p
	}
	return series{place: place, alone: !packages}
}

// custom applies an expression with the group series to the path below the root; a file that does not match belongs to
// its folder.
func custom(c *config) series {
	var pattern string
	template := "{series}"
	c.read("pattern", &pattern, "a regular expression")
	re := c.pattern("pattern", pattern)
	c.read("seriesNameTemplate", &template, "a text with {series}")
	if re == nil {
		return series{place: byFolder}
	}
	groups := slices.DeleteFunc(slices.Clone(re.SubexpNames()), func(s string) bool { return s == "" })
	if !slices.Contains(groups, "series") {
		c.fail("pattern", "needs a group named series: (?P<series>…)")
	}
	c.template("seriesNameTemplate", template, groups)
	return series{place: func(key string) Place {
		m := re.FindStringSubmatch(key)
		if m == nil {
			return byFolder(key)
		}
		values := map[string]string{}
		for i, group := range re.SubexpNames() {
			if values[group] == "" {
				values[group] = strings.TrimSpace(m[i])
			}
		}
		name := fill(template, values)
		if values["series"] == "" || name == "" {
			return byFolder(key)
		}
		return Place{Path: named(name), Name: name, Publisher: naming.Line(values["publisher"]), Book: values["book"], Volume: wholeNumber(values["volume"])}
	}}
}
