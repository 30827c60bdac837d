"""Names of tools by what they are for: two of one group for the same thing compete, two of different groups never do."""

GROUPS: dict[str, str] = {
    "package manager": "npm pnpm yarn bun pip uv poetry pipenv conda pdm cargo maven gradle bazel composer bundler",
    "hosting": (
        "hetzner aws gcp azure heroku fly.io fly render vercel netlify digitalocean linode ovh onprem on-prem "
        "cloudflare scaleway"
    ),
    "ci": (
        "jenkins gitlab travis circleci github-actions gitlab-ci woodpecker drone buildkite teamcity tekton argo "
        "ansible flux spinnaker"
    ),
    "test runner": "jest vitest mocha jasmine karma pytest unittest nose tox nox rspec minitest junit testng",
    "e2e": "cypress playwright selenium puppeteer webdriverio",
    "logger": "structlog loguru logging winston pino bunyan log4j logback zap slog",
    "database": (
        "postgres postgresql mysql mariadb sqlite mongo mongodb oracle dynamodb cassandra cockroachdb sqlserver "
        "mssql clickhouse"
    ),
    "cache": "redis memcached valkey dragonfly hazelcast",
    "queue": "celery rabbitmq rabbit kafka nats sqs dramatiq rq sidekiq bullmq temporal pulsar activemq skip-locked",
    "search": "elasticsearch elastic opensearch solr meilisearch typesense algolia",
    "formatter": "prettier black ruff biome gofmt yamlfmt yapf sqlfluff rustfmt clang-format dprint autopep8",
    "linter": "eslint tslint pylint flake8 ruff biome oxlint rubocop golangci-lint",
    "bundler": "webpack vite rollup esbuild parcel turbopack rspack",
    "frontend": "react vue svelte angular solid preact ember lit flutter react-native ionic",
    "web framework": "django flask fastapi express fastify koa nestjs rails spring laravel starlette gin echo",
    "orm": "sqlalchemy django-orm prisma typeorm drizzle hibernate sequelize peewee tortoise",
    "rpc": "rest grpc graphql soap trpc thrift",
    "dates": "moment date-fns dayjs luxon joda arrow pendulum",
    "http client": "axios fetch requests httpx ky aiohttp",
    "css": "tailwind bootstrap scss sass styled-components emotion",
    "state": "redux zustand mobx recoil jotai pinia vuex signals",
    "flags": "launchdarkly unleash flagsmith flags.yaml configcat growthbook",
    "errors": "sentry glitchtip rollbar bugsnag airbrake",
    "metrics": "datadog prometheus grafana newrelic cloudwatch influxdb",
    "tracker": "jira linear youtrack trello asana github-issues plat",
    "auth": "auth0 keycloak okta cognito clerk",
    "docs": "sphinx mkdocs docusaurus gitbook readthedocs vitepress",
    "config": "yaml toml json ini hcl env",
    "iac": "terraform pulumi cloudformation cdk opentofu",
    "payment": "stripe adyen paypal mollie braintree",
    "vcs": "git svn hg mercurial perforce",
    "container": "kubernetes k8s nomad swarm compose ecs",
    "engine": "unity unreal godot ogre bevy",
    "ml": "pytorch tensorflow jax keras onnx",
    "storage": "s3 minio volume gcs nfs",
    "chat": "slack teams discord mattermost zulip",
    "language": (
        "english german french spanish portuguese polish russian chinese japanese italian dutch turkish englisch "
        "deutsch französisch spanisch inglés alemán francés español anglais allemand français inglês português "
        "espanhol английском русском немецком"
    ),
    "mail": "ses sendgrid mailgun postmark mailchimp",
}
GROUP_OF = {name: group for group, names in GROUPS.items() for name in names.split()}
MULTIWORD = {
    "github actions": "github-actions",
    "gitlab ci": "gitlab-ci",
    "django orm": "django-orm",
    "react native": "react-native",
    "skip locked": "skip-locked",
    "github issues": "github-issues",
}


def tools_in(words: set[str]) -> dict[str, set[str]]:
    """Group → the names of it that are said."""
    by_group: dict[str, set[str]] = {}
    for word in words:
        if group := GROUP_OF.get(word):
            by_group.setdefault(group, set()).add(word)
    return by_group
