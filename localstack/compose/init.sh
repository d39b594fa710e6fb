#!/usr/bin/env bash
# Makes the buckets, queues and notifications that infra/storage.yaml makes at AWS. It may be repeated.
set -euo pipefail
: "${LIBRARY_S3_ENDPOINT:?}" "${MEDIA_S3_ENDPOINT:?}" "${SQS_ENDPOINT:?}" "${AWS_REGION:?}"
: "${LIBRARY_BUCKET:?}" "${MEDIA_BUCKET:?}" "${TASK_QUEUE_URL:?}" "${TASK_DLQ_URL:?}" "${OBJECT_QUEUE_URL:?}"
export AWS_DEFAULT_REGION=$AWS_REGION AWS_PAGER=

# bucket <endpoint> <name>
bucket() {
	aws --endpoint-url "$1" s3api head-bucket --bucket "$2" 2>/dev/null >&2 ||
		aws --endpoint-url "$1" s3api create-bucket --bucket "$2" >/dev/null
}

# queue <URL> <attributes> makes the queue of that name, or changes it to the attributes, and prints its ARN.
queue() {
	local url
	url=$(aws --endpoint-url "$SQS_ENDPOINT" sqs create-queue --queue-name "${1##*/}" --query QueueUrl --output text)
	aws --endpoint-url "$SQS_ENDPOINT" sqs set-queue-attributes --queue-url "$url" --attributes "$2"
	aws --endpoint-url "$SQS_ENDPOINT" sqs get-queue-attributes --queue-url "$url" --attribute-names QueueArn \
		--query Attributes.QueueArn --output text
}

# redrive <ARN> is the attributes of a queue whose messages go there when they were received five times.
redrive() {
	printf '{"VisibilityTimeout":"60","ReceiveMessageWaitTimeSeconds":"20","RedrivePolicy":"{\\"deadLetterTargetArn\\":\\"%s\\",\\"maxReceiveCount\\":5}"}' "$1"
}

bucket "$LIBRARY_S3_ENDPOINT" "$LIBRARY_BUCKET"
bucket "$MEDIA_S3_ENDPOINT" "$MEDIA_BUCKET"
aws --endpoint-url "$MEDIA_S3_ENDPOINT" s3api put-bucket-lifecycle-configuration --bucket "$MEDIA_BUCKET" --lifecycle-configuration \
	'{"Rules":[{"ID":"expire-pages","Status":"Enabled","Filter":{"Prefix":"page/"},"Expiration":{"Days":30}}]}'

kept='{"MessageRetentionPeriod":"1209600"}'
dead=$(queue "$TASK_DLQ_URL" "$kept")
queue "$TASK_QUEUE_URL" "$(redrive "$dead")" >/dev/null
dead=$(queue "$OBJECT_QUEUE_URL-failures" "$kept")
objects=$(queue "$OBJECT_QUEUE_URL" "$(redrive "$dead")")
aws --endpoint-url "$LIBRARY_S3_ENDPOINT" s3api put-bucket-notification-configuration --bucket "$LIBRARY_BUCKET" --notification-configuration \
	"{\"QueueConfigurations\":[{\"QueueArn\":\"$objects\",\"Events\":[\"s3:ObjectCreated:*\",\"s3:ObjectRemoved:*\"]}]}"
echo "buckets, queues and notifications are set up"
