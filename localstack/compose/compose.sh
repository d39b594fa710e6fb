#!/usr/bin/env bash
# The services of compose.yaml, and programs of Longbox against them.
#
#   compose.sh up             settings with new secrets (once), the services, the schema
#   compose.sh settings       only the settings
#   compose.sh run <program>  api, media, worker, scheduler, sse-relay, plugin, or edge (what the CDN asks), from .bin
#   compose.sh down           stops the services; what they keep stays. With -v it goes.
#
# Settings are in DATA_DIR (.data/compose): services.env for the services and migrate, settings.env for every program
# but plugin, which has plugin.env alone, cdn.env for media and the CDN.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
data=${DATA_DIR:-$PWD/.data/compose}

random() { head -c "$1" /dev/urandom | od -An -vtx1 | tr -d ' \n'; }

settings() {
	[[ -e $data/cdn.env ]] || make_settings
	[[ -e $data/plugin.env ]] || make_plugin_settings
}

make_settings() {
	umask 077
	mkdir -p "$data/cdn"
	chmod 755 "$data/cdn" # nginx works in it as another user; the folder around it stays closed
	local postgres owner app system redis key
	key=$(openssl genrsa 2048 2>/dev/null | sed 's/$/\\n/' | tr -d '\n') || {
		echo "compose.sh: openssl cannot create a key: install openssl and try again" >&2
		exit 1
	}
	postgres=$(random 24) owner=$(random 24) app=$(random 24) system=$(random 24) redis=$(random 24)
	cat >"$data/services.env" <<-END
		POSTGRES_PASSWORD=$postgres
		REDIS_PASSWORD=$redis
		LIBRARY_BUCKET=longbox-library
		CDN_FOLDER='${data//\'/\'\\\'\'}/cdn'
		DATABASE_ADMIN_URL=postgres://postgres:$postgres@127.0.0.1:5432/postgres?sslmode=disable
		DATABASE_OWNER_URL=postgres://longbox_owner:$owner@127.0.0.1:5432/longbox?sslmode=disable
		LIBRARY_ROOTS=/books=longbox-library
	END
	cat >"$data/settings.env" <<-END
		DATABASE_URL=postgres://longbox_app:$app@127.0.0.1:5432/longbox?sslmode=disable
		DATABASE_SYSTEM_URL=postgres://longbox_system:$system@127.0.0.1:5432/longbox?sslmode=disable
		REDIS_URL=redis://:$redis@127.0.0.1:6379
		AWS_ACCESS_KEY_ID=longbox$(random 8)
		AWS_SECRET_ACCESS_KEY=$(random 24)
		AWS_REGION=us-east-1
		LIBRARY_S3_ENDPOINT=http://127.0.0.1:4566
		MEDIA_S3_ENDPOINT=http://127.0.0.1:9000
		MEDIA_BUCKET=longbox-media
		S3_PATH_STYLE=true
		SQS_ENDPOINT=http://127.0.0.1:4566
		TASK_QUEUE_URL=http://127.0.0.1:4566/000000000000/longbox-tasks
		TASK_DLQ_URL=http://127.0.0.1:4566/000000000000/longbox-dead
		OBJECT_QUEUE_URL=http://127.0.0.1:4566/000000000000/longbox-objects
		AUTH_SIGNING_KEY=$(head -c 32 /dev/urandom | base64)
		PUBLIC_URL=http://127.0.0.1:8081
		API_URL=http://127.0.0.1:8081
		SINGLE_TENANT=true
	END
	cat >"$data/cdn.env" <<-END
		DELIVERY=redirect
		CDN_URL=http://127.0.0.1:8090
		CDN_KEY_ID=KCOMPOSE
		CDN_PRIVATE_KEY='$key'
		ORIGIN_SECRET=$(random 24)
	END
}

make_plugin_settings() {
	umask 077
	local commands=node,npx,python,python3,uv,uvx token
	token=$(random 24)
	cat >>"$data/settings.env" <<-END
		PLUGIN_COMMANDS=$commands
		PLUGIN_URL=http://127.0.0.1:8086
		PLUGIN_TOKEN=$token
		CREDENTIALS_KEY=$(head -c 32 /dev/urandom | base64)
	END
	cat >"$data/plugin.env" <<-END
		PLUGIN_COMMANDS=$commands
		PLUGIN_TOKEN=$token
		PLUGIN_DATA_DIR='${data//\'/\'\\\'\'}/plugins'
		PLUGIN_CONFINE=true
	END
}

# load <file...> exports settings.
load() {
	local file
	set -a
	for file; do
		# shellcheck disable=SC1090
		. "$data/$file.env"
	done
	set +a
}

compose() {
	docker compose -f "$here/compose.yaml" --env-file "$data/services.env" --env-file "$data/settings.env" "$@"
}

program() {
	local name=$1 ports="api 8081 media 8082 sse-relay 8083 worker 8084 scheduler 8085 plugin 8086 edge 0"
	[[ " $ports " =~ \ $name\ ([0-9]+) ]] || {
		echo "compose.sh run: name one of api, media, worker, scheduler, sse-relay, plugin, edge" >&2
		exit 1
	}
	export LISTEN_ADDR=127.0.0.1:${BASH_REMATCH[1]}
	case $name in plugin) load plugin ;; *) load settings ;; esac # plugin gets no secret of the others
	case $name in media | edge) load cdn ;; esac
	if [[ $name == edge ]]; then
		exec go run ./localstack/cdn/edge -dir "$data/cdn" -media 127.0.0.1:8082
	fi
	exec ".bin/$name"
}

case ${1:-} in
settings) settings ;;
up)
	settings
	(load settings cdn && go run ./localstack/cdn/edge -dir "$data/cdn" -media 127.0.0.1:8082 -write)
	compose up --detach --wait postgres redis minio localstack cdn
	compose run --rm init
	localstack/prepare.sh run
	(load services settings && exec .bin/migrate)
	;;
run) program "${2:-}" ;;
down) compose "$@" ;;
*)
	sed -n '4,7s/^# *//p' "${BASH_SOURCE[0]}" >&2
	exit 1
	;;
esac
