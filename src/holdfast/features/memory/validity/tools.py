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
    "image format": "png jpg jpeg webp avif gif bmp tiff",
    "table format": "csv tsv parquet avro xlsx xls orc",
    "field bus": "modbus profibus profinet canopen ethercat bacnet opc-ua mqtt coap",
    "radio": "ble bluetooth zigbee lora lorawan wifi zwave",
    "log store": "loki kibana splunk graylog papertrail",
    "maps": "leaflet maplibre openlayers mapbox cesium",
    "charts": "d3 echarts chartjs chart.js plotly highcharts recharts",
    "sites": "hugo jekyll gatsby wordpress astro eleventy typo3 drupal",
    "desktop": "electron tauri qt gtk wxwidgets",
    "warehouse": "snowflake bigquery redshift databricks duckdb spark",
    "workflow": "airflow dagster prefect luigi",
    "notes": "wiki confluence notion",
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
    "opc ua": "opc-ua",
    "pull request": "pr",
    "merge request": "pr",
}

_SAME = (
    "image picture photo img bild bilder imagen imágenes foto fotos",
    "error fault failure fehler fehlermeldung fehlermeldungen errores erreur erreurs erro erros",
    "config configuration setting konfiguration configuración configuração",
    "docs doc documentation dokumentation documentación documentação",
    "repo repository", "db database datenbank", "dev development", "prod production produktion producción", "app application",
    "pr prs mr mrs", "comment kommentar kommentare comentario comentarios commentaire commentaires",
    "password passwort passwörter contraseña contraseñas senha senhas", "mail email e-mail correo courriel",
    "answer reply antwort antworten respuesta respuestas réponse réponses resposta respostas",
    "folder directory dir ordner carpeta dossier pasta", "library lib", "store save persist write",
    "delete remove purge erase wipe", "deploy rollout deployment",
)  # fmt: skip
SAME_WORD = {name: words.split()[0] for words in _SAME for name in words.split()[1:]}
"""Two names for one thing, as people who work together use them: the first stands for all."""


def tools_in(words: set[str]) -> dict[str, set[str]]:
    """Group → the names of it that are said."""
    by_group: dict[str, set[str]] = {}
    for word in words:
        if group := GROUP_OF.get(word):
            by_group.setdefault(group, set()).add(word)
    return by_group
