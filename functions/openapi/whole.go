package main

import (
	"github.com/longbox/longbox/shared/app"
	"github.com/longbox/longbox/shared/app/api"
	"github.com/longbox/longbox/shared/app/media"
	"github.com/longbox/longbox/shared/platform/httpapi"
)

// whole describes the API of all functions and of the relay, without any service behind it.
func whole() *httpapi.API {
	a := api.Describe()
	if err := media.Routes(a, &app.Base{}, nil, media.Config{}); err != nil {
		panic(err) // direct delivery has nothing that can fail
	}
	addHealth(a)
	addStreams(a)
	return a
}
