#!/usr/bin/env bash
# Deploys Longbox to AWS: make deploy SIZE=small STACK=longbox [PARAMETERS=file] [WEB_DIR=folder]. docs/cloud.md explains it.
#
# In this order: zips and images, packages in a bucket, the stack (which migrates before it changes the functions), the
# web application, and scans of libraries that are scanned on start. Every step may be repeated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

size=${SIZE:-small}
stack=${STACK:-longbox}
parameters=${PARAMETERS:-}
web=${WEB_DIR:-}

fail() {
	echo "Longbox: $*" >&2
	exit 1
}
for tool in aws docker go git; do
	command -v "$tool" >/dev/null || fail "make deploy needs $tool, which is not installed (aws is the AWS command line, version 2; docker builds the images of media, worker, plugin and sse-relay)"
done
docker buildx version >/dev/null 2>&1 || fail "make deploy needs docker buildx, to build for arm64"
[[ -f infra/parameters/$size ]] || fail "SIZE=$size: there is no such size; the sizes are $(cd infra/parameters && echo *)"
[[ -z $parameters || -f $parameters ]] || fail "PARAMETERS=$parameters: there is no such file"
if [[ -n $web ]]; then # aws takes a folder that is a link for an empty one
	[[ -f $web/index.html ]] || fail "WEB_DIR=$web has no file index.html: name the folder that the build of the web application created"
	web=$(cd "$web" && pwd -P)
	link=$(find "$web" -type l -print -quit)
	[[ -z $link ]] || fail "WEB_DIR has the link $link, which may lead outside it: name a folder without links (cp -rL makes one)"
fi
account=$(aws sts get-caller-identity --query Account --output text) || fail "aws has no credentials: run aws configure, or set AWS_PROFILE"
region=$(aws configure get region || true)
region=${AWS_REGION:-${AWS_DEFAULT_REGION:-$region}}
[[ -n $region ]] || fail "no region: set AWS_REGION"
[[ -z $(git status --porcelain) ]] || fail "the clone has uncommitted changes: commit them first, so that Git has the source of what is deployed"
version=$(git rev-parse --short=12 HEAD)

# name=value lines, those of the size first; name=@file takes a file's content. Some editors end lines with \r\n.
values=("Version=$version")
while IFS= read -r line || [[ -n $line ]]; do # the last one may have no end
	line=${line%$'\r'}
	[[ -z $line || $line == \#* ]] && continue
	[[ $line == *=* ]] || fail "$line: every line of a parameters file must be Name=Value"
	value=${line#*=}
	[[ $value != @* ]] || value=$(<"${value#@}")
	values+=("${line%%=*}=$value")
done < <(cat "infra/parameters/$size" ${parameters:+"$parameters"})
[[ -z $web ]] || values+=("WebApp=true")
given() { # given <parameter> <default>: its last value
	local each found=$2
	for each in "${values[@]}"; do [[ $each != "$1="* ]] || found=${each#*=}; done
	echo "$found"
}

# What a first deployment has made stays when it fails, and the next one goes on from there: the database is protected
# from being deleted, and a stack that cannot be taken back cannot be deployed again.
rollback=--no-disable-rollback
if ! status=$(aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].StackStatus' --output text 2>&1); then
	[[ $status == *'does not exist'* ]] || fail "cannot read the state of the stack $stack: $status"
	status=none
fi
case $status in
none | REVIEW_IN_PROGRESS)
	rollback=--disable-rollback
	free=$(aws lambda get-account-settings --query AccountLimit.UnreservedConcurrentExecutions --output text)
	need=$(($(given WorkerReserved 0) + $(given MediaReserved 0) + $(given RenderReserved 0) + 100)) # of which Lambda demands 100
	[[ $(given Plugins false) == false ]] || need=$((need + $(given PluginReserved 20)))
	((free >= need)) || fail "the account may run $free functions at once in $region, but Longbox needs $need: raise the quota \"Concurrent executions\" of AWS Lambda (Service Quotas)"
	;;
CREATE_FAILED | UPDATE_FAILED) rollback=--disable-rollback ;;
ROLLBACK_COMPLETE | ROLLBACK_FAILED | DELETE_FAILED) fail "the stack $stack is $status and cannot be deployed again: delete it first (docs/cloud.md, Delete)" ;;
UPDATE_ROLLBACK_FAILED) fail "the stack $stack is $status: run aws cloudformation continue-update-rollback --stack-name $stack, wait until that has ended, and deploy again" ;;
*_IN_PROGRESS) fail "the stack $stack is $status: wait until that has ended" ;;
esac

[[ -n ${SIZE:-} || $status == none || $status == REVIEW_IN_PROGRESS ]] || fail "the stack $stack exists: say its size again, SIZE=small or SIZE=large, because the values of another size would change its database and cache"

echo "Longbox: $version as $stack ($size) to account $account, $region"
bucket=longbox-packages-$account-$region
if ! aws s3api head-bucket --bucket "$bucket" 2>/dev/null; then
	aws s3 mb "s3://$bucket"
	aws s3api put-public-access-block --bucket "$bucket" \
		--public-access-block-configuration BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
fi

# The first cluster of an account, its first database and its first scaling each make a role and ask for it in the same
# moment, mostly in vain. Until images are built the roles are known everywhere.
for role in ECS=ecs RDS=rds ApplicationAutoScaling_ECSService=ecs.application-autoscaling; do
	aws iam get-role --role-name "AWSServiceRoleFor${role%=*}" >/dev/null 2>&1 ||
		aws iam create-service-linked-role --aws-service-name "${role#*=}.amazonaws.com" >/dev/null
done

go run ./localstack/dist -lambda

written=()
fix() { # fix <base image> <name>: writes infra/container/<name>.digest unless it is there
	local file=infra/container/$2.digest digest
	[[ ! -f $file ]] || return 0
	# A plain {{.Manifest.Digest}} prints a table of the whole manifest.
	digest=$(docker buildx imagetools inspect "$1" --format '{{printf "%s" .Manifest.Digest}}')
	[[ $digest == sha256:* ]] || fail "docker buildx gives no digest of $1: $digest"
	echo "$digest" >"$file"
	written+=("$file")
}
fix golang:1.26-bookworm golang
fix node:24-bookworm node
((${#written[@]} == 0)) || fail "wrote ${written[*]}: from now on the images are built on these versions. Review and commit the files, then deploy again"
registry=$account.dkr.ecr.$region.amazonaws.com
aws ecr get-login-password | docker login --username AWS --password-stdin "$registry"
# Every release pushes images, and a stack that is deployed seldom needs its old ones: so many stay.
newest='{"rules": [{"rulePriority": 1, "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": 30}, "action": {"type": "expire"}}]}'
image() { # image <name> <Dockerfile> <parameter>
	local repository=longbox/$1
	aws ecr describe-repositories --repository-names "$repository" >/dev/null 2>&1 ||
		aws ecr create-repository --repository-name "$repository" --image-tag-mutability IMMUTABLE --image-scanning-configuration scanOnPush=true >/dev/null
	aws ecr put-lifecycle-policy --repository-name "$repository" --lifecycle-policy-text "$newest" >/dev/null
	if ! aws ecr describe-images --repository-name "$repository" --image-ids imageTag="$version" >/dev/null 2>&1; then
		docker buildx build --platform linux/arm64 --provenance=false --push -f "$2" --build-arg PROGRAM="$1" \
			--build-arg GO_DIGEST="$(<infra/container/golang.digest)" --build-arg NODE_DIGEST="$(<infra/container/node.digest)" -t "$registry/$repository:$version" .
	fi
	local digest
	digest=$(aws ecr describe-images --repository-name "$repository" --image-ids imageTag="$version" --query 'imageDetails[0].imageDigest' --output text)
	values+=("$3=$registry/$repository@$digest")
}
image media infra/container/Dockerfile MediaImage
image worker infra/container/Dockerfile WorkerImage
image plugin infra/container/plugin.Dockerfile PluginImage
image sse-relay sse-relay/Dockerfile RelayImage

# aws zips the template's folder for a function without CodeUri, as those of images are, and sends that. The clone holds
# keys and passwords: so the folder is another one, with the parts of the stack alone.
rm -rf dist/package
mkdir -p dist/package/infra dist/package/dist
cp template.yaml dist/package
cp infra/*.yaml dist/package/infra
cp -R dist/{api,migrate,operator,scheduler} dist/package/dist
aws cloudformation package --template-file dist/package/template.yaml --s3-bucket "$bucket" --output-template-file dist/packaged.yaml >/dev/null
aws cloudformation deploy --template-file dist/packaged.yaml --stack-name "$stack" --s3-bucket "$bucket" \
	--capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND --no-fail-on-empty-changeset "$rollback" --parameter-overrides "${values[@]}" ||
	fail "the stack was not deployed: the events of $stack say why. Correct the cause and deploy again; if a first deployment has to replace something (another zone), delete the stack first (docs/cloud.md, Delete)"
aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].Outputs[].[OutputKey,OutputValue]' --output table

if [[ -n $web ]]; then # New files first, then the page that names them; what nothing names any more goes last.
	files=s3://$(aws cloudformation describe-stacks --stack-name "$stack" --query "Stacks[0].Outputs[?OutputKey=='WebBucket'].OutputValue" --output text)
	aws s3 cp "$web" "$files" --recursive --exclude index.html --exclude '.*' --exclude '*/.*' --cache-control no-cache
	aws s3 cp "$web/index.html" "$files/index.html" --cache-control no-cache
	aws s3 sync "$web" "$files" --delete --exclude '.*' --exclude '*/.*' --cache-control no-cache
fi

scheduler=$(aws cloudformation describe-stack-resource --stack-name "$stack" --logical-resource-id Scheduler \
	--query StackResourceDetail.PhysicalResourceId --output text)
# The command line waits as long as the round may take: else it would give up, and report a failure.
failed=$(AWS_MAX_ATTEMPTS=1 aws lambda invoke --function-name "$scheduler" --cli-read-timeout 420 \
	--cli-binary-format raw-in-base64-out --payload '{"start": true}' --query FunctionError --output text dist/start.json)
[[ $failed == None ]] || { echo "the scheduler failed to request the scans on start ($failed): $(<dist/start.json)" >&2; exit 1; }
echo "Longbox: scans on start: $(<dist/start.json)"
