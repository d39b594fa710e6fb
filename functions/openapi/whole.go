package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// whole is the interface of all functions and the relay together, with nothing behind it.
func whole() *httpapi.API {
	a := api.Describe()
	if err := media.Routes(a, &app.Base{}, nil, media.Config{}); err != nil {
		panic(err) // direct delivery needs nothing that could fail
	}
	addHealth(a)
	addStreams(a)
	return a
}
