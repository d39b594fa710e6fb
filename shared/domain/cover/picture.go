package cover

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"mime/multipart"

	"github.com/longbox/longbox/shared/format/mediatype"
	"github.com/longbox/longbox/shared/platform/fault"
)

// pictureFile is a picture that was uploaded.
type pictureFile struct {
	data          []byte
	kind          string
	width, height *int32
}

// picture returns the picture in the field file of a form.
func picture(contentType string, body []byte) (*pictureFile, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, fault.Invalid("file", "must be sent in a form of type multipart/form-data")
	}
	form := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, fault.Invalid("file", "is missing from the form")
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.BadRequest, "The form cannot be read")
		}
		if part.FormName() != "file" {
			continue
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, fault.Wrap(err, fault.BadRequest, "The form cannot be read")
		}
		p := pictureOf(data)
		if p == nil {
			return nil, fault.Invalid("file", "must be a picture, such as a JPEG, PNG or WebP")
		}
		return p, nil
	}
}

// pictureOf returns data as a picture, nil if it is none.
func pictureOf(data []byte) *pictureFile {
	p := &pictureFile{data: data, kind: mediatype.Detect(data[:min(len(data), mediatype.HeadBytes)])}
	w, h, ok := mediatype.Dimensions(data)
	if !mediatype.Servable(p.kind) || !ok && p.kind != mediatype.TIFF { // the size of TIFF is not read
		return nil
	}
	if ok {
		width, height := int32(w), int32(h)
		p.width, p.height = &width, &height
	}
	return p
}

// IsPicture reports whether data can be a cover.
func IsPicture(data []byte) bool { return pictureOf(data) != nil }

func fingerprint(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
