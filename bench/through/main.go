// Command through only passes on the SDK's response: it checks no token, counts nothing and looks nothing up. It is a
// baseline for pages.
package main

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func main() {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	transport.DisableCompression = true
	store := s3.New(s3.Options{
		Region: os.Getenv("AWS_REGION"), BaseEndpoint: aws.String(os.Getenv("LIBRARY_S3_ENDPOINT")), UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), ""),
		HTTPClient:  &http.Client{Transport: transport},
	})
	err := http.ListenAndServe(os.Getenv("LISTEN_ADDR"), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, key, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if !found { // the readiness check
			return
		}
		object, err := store.GetObject(r.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key, Range: aws.String(r.Header.Get("Range"))})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer object.Body.Close()
		w.Header().Set("Content-Length", strconv.FormatInt(aws.ToInt64(object.ContentLength), 10))
		if _, err := io.Copy(w, object.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
	println(err.Error())
	os.Exit(1)
}
