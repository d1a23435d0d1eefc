package confirm

import "time"

// The terminal and a server speak one request and one answer a connection, a
// line of JSON each.
const (
	protocolVersion = 1
	// maxRequest and maxAnswer are bytes of a line.
	maxRequest = 4 << 10
	maxAnswer  = 4 << 20
	// exchange is how long both lines may take.
	exchange = 10 * time.Second
)

type request struct {
	Version int    `json:"v"`
	Op      string `json:"op"`
	ID      string `json:"id,omitempty"`
	Typed   string `json:"typed,omitempty"`
}

const (
	opList    = "list"
	opShow    = "show"
	opAccept  = "accept"
	opDecline = "decline"
)

type response struct {
	Version int        `json:"v"`
	Error   *WireError `json:"error,omitempty"`
	Waiting []Waiting  `json:"waiting,omitempty"`
	Shown   *Shown     `json:"shown,omitempty"`
}

// Waiting is a plan that waits for a person, as a server tells a terminal.
type Waiting struct {
	ID        string    `json:"id"`
	Tool      string    `json:"tool"`
	Title     string    `json:"title"`
	Principal string    `json:"principal"`
	Client    string    `json:"client"`
	Asked     time.Time `json:"asked"`
	Expires   time.Time `json:"expires"`
	PID       int       `json:"pid"`

	socket string
}

// Shown is all that a person has to see of a plan.
type Shown struct {
	Waiting
	Lines []string `json:"lines"`
	// Hidden counts further lines that are too many to show.
	Hidden int `json:"hidden,omitempty"`
	// Type is the name to type for a yes.
	Type string `json:"type"`
}

// WireError is a server's no to a terminal.
type WireError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *WireError) Error() string { return e.Message }

// Codes of WireError.
const (
	WireNotWaiting = "NotWaiting"
	WireWrongName  = "WrongName"
	WireBadRequest = "BadRequest"
	WireVersion    = "Version"
)
