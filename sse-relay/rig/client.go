package rig

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Block is one block of a stream. Empty lines separate blocks.
type Block struct {
	ID, Event, Data, Comment, Retry string
}

// Client reads one stream.
type Client struct {
	Conn     net.Conn
	Response *http.Response
	LastID   string // resume id: of the last complete block with an id, or the one that opened the stream
	in       *bufio.Reader
}

// Open connects to the relay at addr and requests path with the header lines ("Name: value"). It returns when the
// response header has arrived; the response may be an error.
func Open(addr, path string, lines ...string) (*Client, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	request := "GET " + path + " HTTP/1.1\r\n"
	if !strings.HasPrefix(strings.ToLower(strings.Join(lines, "\n")), "host:") {
		request += "Host: library.test\r\n"
	}
	c := &Client{Conn: conn, in: bufio.NewReaderSize(conn, 1024)}
	for _, line := range lines {
		request += line + "\r\n"
		if name, id, _ := strings.Cut(line, ": "); name == "Last-Event-ID" {
			c.LastID = id
		}
	}
	if _, err := io.WriteString(conn, request+"\r\n"); err != nil {
		conn.Close()
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return nil, err
	}
	if c.Response, err = http.ReadResponse(c.in, nil); err != nil {
		conn.Close()
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return c, nil
}

// Next returns the next complete block. It returns an error when the stream ends or nothing arrives for 20 s.
func (c *Client) Next() (Block, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return Block{}, err
	}
	var b Block
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return Block{}, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			if b.ID != "" {
				c.LastID = b.ID
			}
			return b, nil
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "":
			b.Comment = value
		case "id":
			b.ID = value
		case "event":
			b.Event = value
		case "data":
			b.Data = value
		case "retry":
			b.Retry = value
		default:
			return Block{}, fmt.Errorf("unknown line %q", line)
		}
	}
}

// NextEvent returns the next block that is an event. It returns an error when the stream ends or has none for 20 s.
func (c *Client) NextEvent() (Block, error) {
	for start := time.Now(); ; {
		b, err := c.Next()
		if err != nil || b.Event != "" {
			return b, err
		}
		if passed := time.Since(start); passed > 20*time.Second {
			return b, fmt.Errorf("no event for %s", passed)
		}
	}
}

// Body returns the rest of a response that is not a stream.
func (c *Client) Body() (string, error) {
	text, err := io.ReadAll(c.Response.Body)
	return string(text), err
}

func (c *Client) Close() error { return c.Conn.Close() }
