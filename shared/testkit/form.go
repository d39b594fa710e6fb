package testkit

import (
	"bytes"
	"io"
	"mime/multipart"
	"testing"
)

// Form is the body of a file upload. Member is the name of the file's form member.
type Form struct {
	Member string
	File   []byte
}

// encode returns the form as browsers send it, and its content type.
func (f Form) encode(t testing.TB) (io.Reader, string) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	part, err := w.CreateFormFile(f.Member, "cover.png")
	if err == nil {
		_, err = part.Write(f.File)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &out, w.FormDataContentType()
}
