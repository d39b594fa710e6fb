package infra_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// s3Action is the permission for an operation of the SDK's client. Presigning needs the same.
var s3Action = map[string]string{
	"ListObjectsV2": "s3:ListBucket", "GetObject": "s3:GetObject", "HeadObject": "s3:GetObject",
	"PutObject": "s3:PutObject", "CopyObject": "s3:PutObject", "DeleteObject": "s3:DeleteObject", "DeleteObjects": "s3:DeleteObject",
	"CreateMultipartUpload": "s3:PutObject", "UploadPart": "s3:PutObject", "CompleteMultipartUpload": "s3:PutObject",
	"AbortMultipartUpload": "s3:AbortMultipartUpload", "ListParts": "s3:ListMultipartUploadParts",
	"ListMultipartUploads": "s3:ListBucketMultipartUploads",
}

// signed are functions that sign requests themselves, with the permissions for the requests.
var signed = map[string]string{
	"(*" + module + "/shared/platform/blob.getter).once":      "", // its callers are the next two
	"(*" + module + "/shared/platform/blob.getter).get":       "s3:GetObject",
	"(*" + module + "/shared/platform/blob.getter).list":      "s3:ListBucket",
	"(*" + module + "/shared/platform/blob.getter).presign":   "", // its callers are the next two
	"(*" + module + "/shared/platform/blob.Store).Presign":    "s3:PutObject",
	"(*" + module + "/shared/platform/blob.Store).PresignGet": "s3:GetObject",
	"(*" + module + "/shared/platform/queue.client).once":     "", // its callers name the action: see queueActions
	module + "/shared/platform/plug.byLambda":                 invoke,
}

// invoke is the permission to call plugins.
const invoke = "lambda:InvokeFunction"

// sqsAction is the permission for an action of the queue's protocol.
var sqsAction = map[string]string{
	"SendMessage": "sqs:SendMessage", "SendMessageBatch": "sqs:SendMessage", "ReceiveMessage": "sqs:ReceiveMessage",
	"DeleteMessage": "sqs:DeleteMessage", "DeleteMessageBatch": "sqs:DeleteMessage",
	"ChangeMessageVisibility": "sqs:ChangeMessageVisibility", "ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
	"GetQueueAttributes": "sqs:GetQueueAttributes", "GetQueueUrl": "sqs:GetQueueUrl",
}

// Functions that send requests to the queue, with the action as a constant.
const (
	queueDo   = "(*" + module + "/shared/platform/queue.client).do"
	queueType = "(*" + module + "/shared/platform/queue.Queue)."
	queueEach = queueType + "each"
)

// queues says which queues a *queue.Queue may be, by their parameters of infra/role.yaml. The key is the package and
// the expression before the dot.
var queues = map[string][]string{
	"shared/domain/task: Queue": {"TaskQueueArn"},
	"shared/app/worker: q":      {"TaskQueueArn", "TaskFailuresArn", "ObjectQueueArn"},
}

// eventSource are the actions of Lambda on a queue that it reads on behalf of a function.
var eventSource = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}

const store = "(*" + module + "/shared/platform/blob.Store)."

// stores says which bucket a *blob.Store belongs to, unless it is named Library or Media. The key is the package and
// the expression before the dot.
var stores = map[string]string{
	"shared/app/api: store":                "library",
	"shared/domain/analysis: Store":        "library",
	"shared/domain/content: Store":         "library",
	"shared/domain/koreader/digest: Store": "library",
	"shared/domain/measure: store":         "library", // or media, of page packs
	"shared/domain/page: Store":            "library",
	"shared/domain/page: store":            "library",
	"shared/domain/rendition: Store":       "library",
	"shared/domain/scan/scanner: store":    "library",
	"shared/domain/upload: Store":          "library",
	"shared/domain/upload: store":          "library",
}

// needs returns the permissions that a program's calls need, such as "library s3:GetObject" and
// "TaskQueueArn sqs:SendMessage".
func needs(t *testing.T, p program) map[string]bool {
	g, out := reach(t), map[string]bool{}
	reached := g.program(p.folder)
	if len(reached) < 100 {
		t.Fatalf("only %d functions found in %s: the search is broken", len(reached), p.folder)
	}
	for f := range reached {
		for _, c := range g.calls[f] {
			switch {
			case strings.HasPrefix(strings.Replace(c.callee, "(*", "(", 1), "(github.com/aws/aws-sdk-go-v2/aws/signer/v4.Signer)."):
				action, ok := signed[f]
				if !ok {
					t.Errorf("%s signs requests: add it to signed in infra/permission_test.go, with what they need", f)
				}
				if action == invoke {
					out[invoke] = true
				}
			case strings.HasPrefix(c.callee, queueType) && packageOf(f) != "shared/platform/queue":
				for _, action := range queueActions(t, g, c.callee) {
					key := packageOf(f) + ": " + c.receiver
					if queues[key] == nil {
						t.Errorf("%s: which queue is %s? Add %q to queues in infra/permission_test.go", g.files.Position(c.position), c.receiver, key)
					}
					for _, queue := range queues[key] {
						out[queue+" "+action] = true
					}
				}
			case strings.HasPrefix(c.callee, store) && !strings.HasPrefix(packageOf(f), "shared/platform/blob"):
				bucket := strings.ToLower(c.receiver)
				if bucket != "library" && bucket != "media" {
					if bucket = stores[packageOf(f)+": "+c.receiver]; bucket == "" {
						t.Errorf("%s: which bucket is %s.%s of? Add %q to stores in infra/permission_test.go", g.files.Position(c.position), c.receiver, strings.TrimPrefix(c.callee, store), packageOf(f)+": "+c.receiver)
					}
				}
				for _, action := range actions(t, g, c.callee) {
					out[bucket+" "+action] = true
				}
			}
		}
	}
	return out
}

var ofModule = regexp.MustCompile(`^(?:init |\(\*?)?` + regexp.QuoteMeta(module) + `/([\w/-]+)`)

// packageOf returns the folder of a function: shared/app/api for (*github.com/…/shared/app/api.T).Method.
func packageOf(f string) string {
	if m := ofModule.FindStringSubmatch(f); m != nil {
		return m[1]
	}
	return f
}

// actions returns the S3 actions of a method of the store.
func actions(t *testing.T, g *graph, method string) (out []string) {
	for f := range g.from(method) {
		if a := signed[f]; a != "" {
			out = append(out, a)
		}
		for _, c := range g.calls[f] {
			op, ok := strings.CutPrefix(c.callee, "(*github.com/aws/aws-sdk-go-v2/service/s3.Client).")
			if !ok {
				if op, ok = strings.CutPrefix(c.callee, "(*github.com/aws/aws-sdk-go-v2/service/s3.PresignClient).Presign"); !ok {
					continue
				}
			}
			if s3Action[op] == "" {
				t.Errorf("%s calls S3's %s: add what it needs to s3Action in infra/permission_test.go", f, op)
				continue
			}
			out = append(out, s3Action[op])
		}
	}
	if slices.Contains(out, "s3:GetObject") {
		out = append(out, "s3:ListBucket") // Without it, a missing object is 403 instead of 404.
	}
	return out
}

// queueActions returns the SQS actions of a method of the queue.
func queueActions(t *testing.T, g *graph, method string) (out []string) {
	for f := range g.from(method) {
		for _, c := range g.calls[f] {
			if c.callee != queueEach && (c.callee != queueDo || f == queueEach) {
				continue
			}
			if len(c.literals) == 0 || sqsAction[c.literals[0]] == "" {
				t.Errorf("%s calls the queue with an action that sqsAction in infra/permission_test.go does not know: %q", f, c.literals)
				continue
			}
			out = append(out, sqsAction[c.literals[0]])
		}
	}
	return out
}

var account = regexp.MustCompile(`^arn:\$\{AWS::Partition\}:s3:::\$\{(Library|Media)Bucket\}(/\*)?$`)

// given returns the permissions of a function's role, in the format of needs, without those that every function has
// (Base).
func given(t *testing.T, role string) map[string]bool {
	out := map[string]bool{}
	for _, s := range read(t, "infra/role.yaml").get("Resources", role, "Properties", "Policies").list() {
		for _, statement := range s.get("PolicyDocument", "Statement").list() {
			statement = statement.chosen(true)
			for _, resource := range statement.get("Resource").list() {
				for _, action := range statement.get("Action").list() {
					name := action.text()
					if strings.Contains(name, "*") {
						t.Errorf("role %s: %s is more than one action", role, name)
					}
					m := account.FindStringSubmatch(resource.text())
					switch {
					case strings.HasPrefix(name, "sqs:"):
						out[resource.text()+" "+name] = true
					case name == invoke && resource.text() == "PluginFunction":
						out[name] = true
					case m == nil:
						t.Errorf("role %s: %s on %q is neither on a bucket nor on a queue, nor invokes plugins", role, name, resource.text())
					case (m[2] == "") != strings.HasPrefix(name, "s3:ListBucket"):
						t.Errorf("role %s: %s cannot be on %q: lists are of the bucket, the rest of its objects", role, name, resource.text())
					default:
						out[strings.ToLower(m[1])+" "+name] = true
					}
				}
			}
		}
	}
	return out
}

func TestRolesAllowWhatTheCodeCalls(t *testing.T) {
	t.Parallel()
	template := read(t, "template.yaml")
	wanted, byRole := map[string]map[string]string{}, map[string][]string{}
	for _, p := range programs {
		if p.resource == "" {
			if n := needs(t, p); len(n) > 0 {
				t.Errorf("the relay, whose role allows nothing, calls %v", slices.Collect(maps.Keys(n)))
			}
			continue
		}
		function := template.get("Resources", p.resource, "Properties")
		role := strings.TrimPrefix(function.get("Role").text(), "Role.Outputs.")
		byRole[role] = append(byRole[role], p.resource)
		if wanted[role] == nil {
			wanted[role] = map[string]string{}
		}
		for need := range needs(t, p) {
			wanted[role][need] = p.folder
		}
		_, events := function.get("Events").pairs()
		for _, e := range events {
			if e.get("Type").text() == "SQS" {
				queue := strings.TrimPrefix(e.get("Properties", "Queue").text(), "Storage.Outputs.")
				for _, a := range eventSource {
					wanted[role][queue+" "+a] = fmt.Sprintf("Lambda, for the queue that %s is invoked with,", p.resource)
				}
			}
		}
	}
	for role, wants := range wanted {
		has := given(t, role)
		t.Logf("%s %v: %v", role, byRole[role], slices.Sorted(maps.Keys(wants)))
		for need, who := range wants {
			if !has[need] {
				t.Errorf("infra/role.yaml: role %s lacks %s, which %s calls", role, need, who)
			}
		}
		for allowed := range has {
			if wants[allowed] == "" {
				t.Errorf("infra/role.yaml: role %s allows %s, which nothing in %v calls: take it away", role, allowed, byRole[role])
			}
		}
	}
}
