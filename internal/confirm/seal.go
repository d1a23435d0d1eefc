package confirm

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"
)

// nonce names a question once.
type nonce [16]byte

// sealed is what the state of a question carries. Only hashes go out: a
// client has no use for more.
type sealed struct {
	nonce           nonce
	call, who, plan hash
	expires         time.Time
}

// sealer makes states and reads them back. Its key lives and dies with the
// process.
type sealer struct {
	key [32]byte
	// id tells states of this process from those of another.
	id [8]byte
}

// The layout of a state, before base64: version, key id, nonce, three hashes,
// expiry in Unix milliseconds, HMAC-SHA256 of all that.
const (
	stateVersion = 1
	stateBody    = 1 + 8 + 16 + 3*sha256.Size + 8
	stateSize    = stateBody + sha256.Size
)

// stateEncoding is strict: one state has one spelling.
var stateEncoding = base64.RawURLEncoding.Strict()

func (s *sealer) mac(body []byte) []byte {
	m := hmac.New(sha256.New, s.key[:])
	m.Write(body)
	return m.Sum(nil)
}

func (s *sealer) seal(x sealed) string {
	b := make([]byte, 0, stateSize)
	b = append(b, stateVersion)
	b = append(b, s.id[:]...)
	b = append(b, x.nonce[:]...)
	b = append(b, x.call[:]...)
	b = append(b, x.who[:]...)
	b = append(b, x.plan[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(x.expires.UnixMilli()))
	return stateEncoding.EncodeToString(append(b, s.mac(b)...))
}

// open reads a state. The error is *Expired: Unknown for the state of another
// process, Tampered for everything that seal did not write.
func (s *sealer) open(state string) (x sealed, err error) {
	if len(state) != stateEncoding.EncodedLen(stateSize) {
		return x, &Expired{Tampered}
	}
	b, err := stateEncoding.DecodeString(state)
	if err != nil || b[0] != stateVersion {
		return x, &Expired{Tampered}
	}
	if [8]byte(b[1:9]) != s.id {
		return x, &Expired{Unknown}
	}
	if !hmac.Equal(b[stateBody:], s.mac(b[:stateBody])) {
		return x, &Expired{Tampered}
	}
	b = b[9:]
	b = b[copy(x.nonce[:], b):]
	b = b[copy(x.call[:], b):]
	b = b[copy(x.who[:], b):]
	b = b[copy(x.plan[:], b):]
	x.expires = time.UnixMilli(int64(binary.BigEndian.Uint64(b)))
	return x, nil
}
