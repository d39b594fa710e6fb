package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"

	"github.com/longbox/longbox/shared/format/archive"
)

// cipherOf is the encryption of an object's bytes.
type cipherOf byte

const (
	plainText cipherOf = iota
	withRC4
	withAES // 128 bits, with a key per object
	withAES256
)

// key decrypts a document that anybody may read: its author restricted printing or copying, but set no password for
// reading (7.6.3). Documents with such a password are refused.
type key struct {
	bytes          []byte
	streams, texts cipherOf
}

// padding pads a password to 32 bytes (algorithm 2): here it is the whole password.
const padding = "\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a"

// unlock sets the key of an encrypted document.
func (d *reader) unlock() error {
	v, err := d.follow(d.head["Encrypt"])
	if err != nil || v == nil {
		return err
	}
	encrypt, _ := v.(dict)
	k, ok := d.openKey(encrypt)
	if !ok {
		return archive.Errorf(archive.Encrypted, "the PDF document is encrypted: remove its password")
	}
	d.key = k
	return nil
}

// openKey returns the key of a document with an empty user password, from its encryption dictionary (7.6.3.2).
func (d *reader) openKey(encrypt dict) (*key, bool) {
	get := func(k name) any { return d.value(encrypt[k]) }
	version, _ := integer(get("V"))
	k := &key{streams: withRC4, texts: withRC4}
	length := int64(5)
	switch version {
	case 1:
	case 2:
		if bits, ok := integer(get("Length")); ok {
			length = bits / 8
		}
	case 4, 5:
		length = 16
		var known [2]bool
		k.streams, known[0] = d.filterOf(encrypt, "StmF")
		k.texts, known[1] = d.filterOf(encrypt, "StrF")
		if known != [2]bool{true, true} {
			return nil, false
		}
	}
	owner, _ := get("O").(text)
	user, _ := get("U").(text)
	if get("Filter") != name("Standard") || length < 5 || length > 16 || len(owner) < 32 || len(user) < 32 {
		return nil, false
	}
	switch revision, _ := integer(get("R")); {
	case revision >= 2 && revision <= 4 && version != 5:
		k.bytes = d.legacyKey(encrypt, revision, int(length), owner)
		return k, d.opens(k.bytes, revision, user)
	case (revision == 5 || revision == 6) && version == 5:
		sealed, _ := get("UE").(text)
		k.bytes = key256(revision, user, sealed)
		return k, k.bytes != nil
	}
	return nil, false
}

// filterOf returns the crypt filter (7.6.5) for streams or texts, or false if it is unknown.
func (d *reader) filterOf(encrypt dict, use name) (cipherOf, bool) {
	chosen, ok := d.value(encrypt[use]).(name)
	if !ok || chosen == "Identity" {
		return plainText, true
	}
	filters, _ := d.value(encrypt["CF"]).(dict)
	filter, _ := d.value(filters[chosen]).(dict)
	method, _ := d.value(filter["CFM"]).(name)
	c, ok := map[name]cipherOf{"None": plainText, "V2": withRC4, "AESV2": withAES, "AESV3": withAES256}[method]
	return c, ok
}

// legacyKey is algorithm 2 for the empty password, for revisions 2 to 4.
func (d *reader) legacyKey(encrypt dict, revision int64, length int, owner text) []byte {
	permissions, _ := integer(d.value(encrypt["P"]))
	b := []byte(padding + owner[:32])
	b = binary.LittleEndian.AppendUint32(b, uint32(permissions))
	b = append(b, d.firstID()...)
	if revision == 4 && d.value(encrypt["EncryptMetadata"]) == false {
		b = append(b, 0xff, 0xff, 0xff, 0xff)
	}
	sum := md5.Sum(b)
	if revision >= 3 {
		for range 50 {
			sum = md5.Sum(sum[:length])
		}
	}
	return sum[:length]
}

// opens reports whether a key is right (algorithms 4 to 6).
func (d *reader) opens(k []byte, revision int64, user text) bool {
	if revision == 2 {
		return string(rc4Of(k, []byte(padding))) == string(user[:32])
	}
	sum := md5.Sum([]byte(padding + d.firstID()))
	out := sum[:]
	for i := range byte(20) {
		round := bytes.Clone(k)
		for j := range round {
			round[j] ^= i
		}
		out = rc4Of(round, out)
	}
	return string(out) == string(user[:16])
}

func (d *reader) firstID() text {
	if ids := d.identity(); len(ids) > 0 {
		return ids[0]
	}
	return ""
}

// key256 is algorithm 2.A of ISO 32000-2 for the empty password. It returns nil if that is wrong. user is a hash of 32
// bytes, then 8 bytes of validation salt and 8 of key salt.
func key256(revision int64, user, sealed text) []byte {
	if len(user) < 48 || len(sealed) < 32 {
		return nil
	}
	if sum := hash256(revision, []byte(user[32:40])); string(sum) != string(user[:32]) {
		return nil
	}
	out := make([]byte, 32)
	cipher.NewCBCDecrypter(aesOf(hash256(revision, []byte(user[40:48]))), make([]byte, aes.BlockSize)).CryptBlocks(out, []byte(sealed[:32]))
	return out
}

// hash256 is algorithm 2.B for the empty password. Revision 5 only had its first step.
func hash256(revision int64, salt []byte) []byte {
	first := sha256.Sum256(salt)
	k := first[:]
	for round, last := 0, byte(0); revision == 6 && (round < 64 || int(last) > round-32); round++ {
		e := bytes.Repeat(k, 64)
		cipher.NewCBCEncrypter(aesOf(k[:16]), k[16:32]).CryptBlocks(e, e)
		last = e[len(e)-1]
		sum := 0
		for _, c := range e[:16] {
			sum += int(c) // 256 is 1 modulo 3
		}
		switch sum % 3 {
		case 0:
			s := sha256.Sum256(e)
			k = s[:]
		case 1:
			s := sha512.Sum384(e)
			k = s[:]
		case 2:
			s := sha512.Sum512(e)
			k = s[:]
		}
	}
	return k[:32]
}

// open decrypts the bytes of an object (7.6.2). It reports false if they are invalid.
func (k *key) open(c cipherOf, at ref, b []byte) ([]byte, bool) {
	switch c {
	case withRC4:
		return rc4Of(k.of(at, ""), b), true
	case withAES:
		return cbc(k.of(at, "sAlT"), b)
	case withAES256:
		if len(k.bytes) != 32 {
			return nil, false
		}
		return cbc(k.bytes, b)
	}
	return b, true
}

// of returns the key of one object (algorithm 1).
func (k *key) of(at ref, salt string) []byte {
	b := bytes.Clone(k.bytes)
	b = append(b, byte(at.number), byte(at.number>>8), byte(at.number>>16), byte(at.generation), byte(at.generation>>8))
	sum := md5.Sum(append(b, salt...))
	return sum[:min(len(k.bytes)+5, len(sum))]
}

// openTexts decrypts all texts in an object's value, in place.
func (k *key) openTexts(v any, at ref) any {
	switch v := v.(type) {
	case text:
		out, ok := k.open(k.texts, at, []byte(v))
		if !ok {
			return text("")
		}
		return text(out)
	case array:
		for i := range v {
			v[i] = k.openTexts(v[i], at)
		}
	case dict:
		for n := range v {
			v[n] = k.openTexts(v[n], at)
		}
	}
	return v
}

func rc4Of(k, b []byte) []byte {
	c, err := rc4.NewCipher(k)
	if err != nil {
		panic(err) // the key length is always valid
	}
	out := make([]byte, len(b))
	c.XORKeyStream(out, b)
	return out
}

func aesOf(k []byte) cipher.Block {
	c, err := aes.NewCipher(k)
	if err != nil {
		panic(err) // the key length is always valid
	}
	return c
}

// cbc decrypts data with a leading initialization vector and trailing padding.
func cbc(k, b []byte) ([]byte, bool) {
	if len(b) < aes.BlockSize || len(b)%aes.BlockSize != 0 {
		return nil, false
	}
	out := make([]byte, len(b)-aes.BlockSize)
	cipher.NewCBCDecrypter(aesOf(k), b[:aes.BlockSize]).CryptBlocks(out, b[aes.BlockSize:])
	if len(out) == 0 {
		return out, true
	}
	pad := int(out[len(out)-1])
	if pad == 0 || pad > aes.BlockSize {
		return out, true // some programs omit the padding
	}
	return out[:len(out)-pad], true
}
