package plugin

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/longbox/longbox/shared/cut"
	"github.com/longbox/longbox/shared/domain/book"
	"github.com/longbox/longbox/shared/domain/reference"
	"github.com/longbox/longbox/shared/format/language"
	"github.com/longbox/longbox/shared/format/naming"
)

// common is the plugin metadata that series and books share (docs/plugins.md).
type common struct {
	ExternalID   string   `json:"externalId"`
	ExternalURL  *string  `json:"externalUrl"`
	Title        *string  `json:"title"`
	Summary      *string  `json:"summary"`
	Year         *float64 `json:"year"`
	Language     *string  `json:"language"`
	Genres       []string `json:"genres"`
	Tags         []string `json:"tags"`
	Authors      []person `json:"authors"`
	Artists      []string `json:"artists"`
	Publisher    *string  `json:"publisher"`
	CoverURL     *string  `json:"coverUrl"`
	Rating       *given   `json:"rating"`
	ExternalRate []given  `json:"externalRatings"`
	Links        []struct {
		URL   string `json:"url"`
		Label string `json:"label"`
	} `json:"externalLinks"`
	IDs []struct {
		Source     string `json:"source"`
		ExternalID string `json:"externalId"`
	} `json:"externalIds"`
}

type person struct {
	Name     string  `json:"name"`
	Role     string  `json:"role"`
	SortName *string `json:"sortName"`
}

type given struct {
	Score     float64  `json:"score"`
	VoteCount *float64 `json:"voteCount"`
	Source    string   `json:"source"`
}

const unusable = "The plugin's value is not valid"

// lost is why a list is empty of which the plugin has said so many.
func lost(said, left int) string {
	if said > 0 && left == 0 {
		return unusable
	}
	return ""
}

// line is a text of one line that can be used, else nil, and why.
func line(text *string, most int) (*string, string) {
	if text == nil || *text == "" {
		return nil, ""
	}
	out := cut.Chars(*text, most)
	if !naming.Printable(&out) {
		return nil, unusable
	}
	return &out, ""
}

// prose returns a usable multi-line text, else nil.
func prose(text *string) *string {
	if text == nil {
		return nil
	}
	out := clipTo(cut.Storable(*text), 60_000)
	if out == "" {
		return nil
	}
	return &out
}

// whole returns an integer within bounds, else nil and the reason.
func whole(n *float64, from, to int32) (*int32, string) {
	if n == nil {
		return nil, ""
	}
	if *n != math.Trunc(*n) || *n < float64(from) || *n > float64(to) {
		return nil, unusable
	}
	return new(int32(*n)), ""
}

// fraction returns a number within bounds, else nil and the reason.
func fraction(n *float64) (*float64, string) {
	if n == nil {
		return nil, ""
	}
	if !(*n >= 0 && *n <= 9_999_999) {
		return nil, unusable
	}
	return n, ""
}

// among returns a word that is one of some, else nil and the reason.
func among(word *string, some ...string) (*string, string) {
	if word == nil || *word == "" {
		return nil, ""
	}
	out := strings.ToLower(strings.TrimSpace(*word))
	if !slices.Contains(some, out) {
		return nil, unusable
	}
	return &out, ""
}

// tongue returns a language tag, else nil and the reason.
func tongue(tag *string) (*string, string) {
	if tag == nil || *tag == "" {
		return nil, ""
	}
	if out := language.Tag(*tag); out != "" {
		return &out, ""
	}
	return nil, unusable
}

// names returns the usable names of a list without duplicates.
func names(list []string, most, length int) []string {
	var out []string
	for _, n := range list {
		text, _ := line(&n, length)
		if text != nil && len(out) < most && !slices.ContainsFunc(out, func(o string) bool { return strings.EqualFold(o, *text) }) {
			out = append(out, *text)
		}
	}
	return out
}

// roles are the roles of people.
var roles = strings.Fields("author co_author editor translator illustrator contributor writer penciller inker colorist letterer cover_artist")

// people returns the people in the form of user input; an unknown role becomes contributor.
func (c *common) people() []book.AuthorBody {
	var out []book.AuthorBody
	add := func(name, role string, sort *string) {
		text, _ := line(&name, 500)
		if text == nil || len(out) == 200 {
			return
		}
		sortName, _ := line(sort, 500)
		out = append(out, book.AuthorBody{Name: *text, Role: role, SortName: sortName})
	}
	for _, a := range c.Authors {
		role := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(a.Role)), " ", "_")
		switch {
		case role == "":
			role = "author"
		case !slices.Contains(roles, role):
			role = "contributor"
		}
		add(a.Name, role, a.SortName)
	}
	for _, name := range c.Artists {
		add(name, "illustrator", nil)
	}
	return out
}

// links returns the usable links.
func (c *common) links() []reference.LinkBody {
	var g reference.Given
	for _, l := range c.Links {
		g.Links = append(g.Links, reference.LinkBody{SourceName: l.Label, URL: l.URL})
	}
	g.Check()
	return g.Links
}

// ids returns the ids at other services, without the plugin's own.
func (c *common) ids() []reference.IDBody {
	var g reference.Given
	for _, i := range c.IDs {
		if !strings.HasPrefix(strings.TrimSpace(i.Source), sourcePrefix) {
			g.IDs = append(g.IDs, reference.IDBody{Source: i.Source, ExternalID: i.ExternalID})
		}
	}
	g.Check()
	return g.IDs
}

// own returns the plugin's own id.
func (c *common) own(plugin string) []reference.IDBody {
	g := reference.Given{IDs: []reference.IDBody{{Source: sourcePrefix + plugin, ExternalID: c.ExternalID, ExternalURL: c.ExternalURL}}}
	if g.Check(); g.IDs == nil { // its link is unusable
		g.IDs = []reference.IDBody{{Source: sourcePrefix + plugin, ExternalID: c.ExternalID}}
		g.Check()
	}
	return g.IDs
}

// ratings returns the external ratings.
func (c *common) ratings(plugin string) []reference.RatingBody {
	var g reference.Given
	all := slices.Clone(c.ExternalRate)
	if c.Rating != nil {
		own := *c.Rating
		own.Source = cmp.Or(own.Source, plugin)
		all = append(all, own)
	}
	for _, r := range all {
		votes, _ := whole(r.VoteCount, 0, math.MaxInt32)
		if r.Score >= 0 && r.Score <= 100 {
			g.Ratings = append(g.Ratings, reference.RatingBody{SourceName: r.Source, Rating: r.Score, VoteCount: votes})
		}
	}
	g.Check()
	return g.Ratings
}

// termNames returns the names of genres or tags.
func termNames(terms []book.Term) []string {
	out := make([]string, len(terms))
	for i, t := range terms {
		out[i] = t.Name
	}
	slices.Sort(out)
	return out
}

// spelled returns current if the list has the same genres or tags, else a sorted copy. Case makes no difference: the
// spelling that came first stays.
func spelled(list, current []string) []string {
	if slices.Equal(folded(list), folded(current)) {
		return current
	}
	return slices.Sorted(slices.Values(list))
}

// folded returns a sorted copy in lower case, for comparison.
func folded(list []string) []string {
	out := make([]string, len(list))
	for i, name := range list {
		out[i] = strings.ToLower(name)
	}
	slices.Sort(out)
	return out
}
