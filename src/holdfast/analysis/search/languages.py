"""Determines a file's language and role by its name alone."""

import posixpath
import re
from functools import lru_cache

BY_SUFFIX = {
    "python": (".py", ".pyi", ".pyw"),
    "javascript": (".js", ".jsx", ".mjs", ".cjs"),
    "typescript": (".ts", ".mts", ".cts"),
    "tsx": (".tsx",),
    "go": (".go",),
    "rust": (".rs",),
    "java": (".java",),
    "c": (".c", ".h", ".m", ".y", ".l"),
    "cpp": (".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp", ".cu", ".ino", ".mm"),
    "c-sharp": (".cs",),
    "ruby": (".rb", ".rake", ".gemspec"),
    "php": (".php",),
    "bash": (".sh", ".bash", ".zsh", ".fish", ".ksh", ".bats", ".nu", ".xsh", ".awk"),
    "kotlin": (".kt", ".kts"),
    "swift": (".swift",),
    "scala": (".scala", ".sc"),
    "lua": (".lua",),
    "perl": (".pl", ".pm"),
    "elixir": (".ex", ".exs"),
    "erlang": (".erl", ".hrl"),
    "haskell": (".hs",),
    "ocaml": (".ml", ".mli"),
    "clojure": (".clj", ".cljs", ".cljc"),
    "dart": (".dart",),
    "zig": (".zig",),
    "nim": (".nim",),
    "julia": (".jl",),
    "r": (".r",),
    "groovy": (".groovy", ".gradle"),
    "powershell": (".ps1", ".psm1", ".bat", ".cmd"),
    "sql": (".sql",),
    "vue": (".vue",),
    "svelte": (".svelte",),
    "protobuf": (".proto", ".thrift"),
    "graphql": (".graphql", ".gql"),
    "terraform": (".tf", ".hcl"),
    "css": (".css", ".scss", ".sass", ".less"),
    "html": (
        ".html",
        ".htm",
        ".jinja",
        ".jinja2",
        ".j2",
        ".tmpl",
        ".erb",
        ".hbs",
        ".tpl",
        ".twig",
        ".ejs",
        ".pug",
        ".liquid",
        ".slim",
        ".haml",
        ".vm",
    ),
    "xml": (".xml", ".xsd", ".xslt", ".csproj", ".fsproj", ".vbproj", ".props", ".targets", ".nuspec", ".config"),
    "markdown": (".md", ".mdx", ".markdown"),
    "rst": (".rst",),
    "prisma": (".prisma",),
    "text": (".txt", ".adoc", ".org", ".tex", ".1", ".2", ".3", ".4", ".5", ".6", ".7", ".8"),
    "yaml": (".yaml", ".yml"),
    "toml": (".toml",),
    "json": (".json", ".jsonc", ".json5"),
    "ini": (
        ".ini",
        ".cfg",
        ".conf",
        ".properties",
        ".cnf",
        ".service",
        ".socket",
        ".timer",
        ".desktop",
        ".neon",
    ),
    "make": (".mk", ".cmake", ".am", ".ac", ".m4"),
    "docker": (".dockerfile",),
    "nix": (".nix",),
    "vim": (".vim",),
    "lisp": (".el", ".lisp", ".scm"),
}
BY_NAME = {
    "makefile": "make",
    "gnumakefile": "make",
    "cmakelists.txt": "make",
    "justfile": "make",
    "dockerfile": "docker",
    "containerfile": "docker",
    "caddyfile": "ini",
    "procfile": "ini",
    ".editorconfig": "ini",
    "codeowners": "text",
    "jenkinsfile": "groovy",
    "rakefile": "ruby",
    "gemfile": "ruby",
    "vagrantfile": "ruby",
    "readme": "text",
    "license": "text",
    "licence": "text",
    "changelog": "text",
    "authors": "text",
    "contributing": "text",
    "go.mod": "go-mod",
}
_SUFFIXES = {suffix: language for language, suffixes in BY_SUFFIX.items() for suffix in suffixes}
LANGUAGES = frozenset((*BY_SUFFIX, *BY_NAME.values()))
PROSE = frozenset(("markdown", "rst", "text"))


def language_of_path(path: str) -> str:
    """Empty if the name says nothing."""
    name = posixpath.basename(path).lower()
    # `config.yaml.example` is YAML, too.
    for ending in (".example", ".sample", ".dist", ".template", ".in"):
        name = name.removesuffix(ending)
    # `Dockerfile.alpine` is named the other way round.
    first = name.partition(".")[0]
    return BY_NAME.get(name) or _SUFFIXES.get(posixpath.splitext(name)[1], "") or BY_NAME.get(first, "")


CODE, TEST, DOCUMENT, CONFIGURATION, TRANSLATION, CHANGELOG, DATA, VENDORED, STYLE, AUTOMATION = (
    "code",
    "test",
    "document",
    "configuration",
    "translation",
    "changelog",
    "data",
    "vendored",
    "style",
    "automation",
)
# What runs on a build server.
_AUTOMATION = re.compile(
    r"(?i)(?:^|/)(?:\.github|\.gitlab|\.circleci|\.buildkite|\.azure-pipelines)/|(?:^|/)\.(?:gitlab-ci|travis)\.ya?ml$"
)
# Third-party code in the repository.
_VENDORED = re.compile(
    r"(?i)(?:^|/)(?:vendor|vendored|third[-_]?party|3rdparty|node_modules|bower_components|externals?|Pods|Carthage)/"
    r"|(?:^|/)(?:jquery|bootstrap|font-?awesome|moment|lodash|angular|d3|popper|modernizr|normalize)[-.\w]*\.(?:js|css|scss|less)$"
)
# Folders of tests, or files named test_*, conftest.*, *_test.*, *.spec.*.
_TEST = re.compile(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|test-utils|__tests__|__mocks__|specs?|e2e|regress(?:ion)?|fixtures|cypress)/"
    r"|(?:^|/)(?:test_|conftest\.)|[._-](?:tests?|spec)\.\w+$|(?:^|/)mocks?/|(?:^|/)mock_\w+\.\w+$"
)
# `ParserTest.java`, `ParserSpec.scala`: case matters, or `latest.py` would match.
_TEST_CLASS = re.compile(r"[a-z0-9](?:Tests?|TestCase|Spec)\.\w+$")
# Folders of locales, `messages_de.properties`, and `README.de.md` with a language code.
_TRANSLATION = re.compile(
    r"(?i)(?:^|/)(?:i18n|l10n|locales?|langs?|languages?|translations?)/.*\.(?:json|ya?ml|php|properties|js|ts|xml|toml|rb|py|po)$"
    r"|(?:^|/)messages?_[a-z]{2}(?:_[a-z]{2})?\.\w+$"
    r"|(?:^|/)(?:readme|contributing|install|usage|guide|faq|index)[-_.]"
    r"(?:ar|bg|bn|cs|da|de|el|es|fa|fi|fr|he|hi|hu|id|it|ja|jp|ko|kr|nb|nl|no|pl|pt|ro|ru|sk|sv|th|tr|uk|ur|vi|zh|cn|tw)"
    r"(?:[-_](?:[a-z]{2}|hans|hant))?\.(?:md|rst|markdown|txt|adoc)$"
)
# Rust keeps tests in a module `tests` in the same file.
_RUST_TEST = re.compile(r"(?:^|\.)(?:tests?|test_\w+|\w+_tests?)(?:\.|$)")
_CHANGELOG = re.compile(
    r"(?i)(?:^|/)(?:changelog|changes|history|news|release[-_]?notes|upgrade|authors|contributors)\b[^/.]*"
    r"(?:\.(?:md|rst|txt|adoc|org))?$"
)
_CONFIGURATION_LANGUAGES = frozenset(
    ("yaml", "toml", "json", "ini", "xml", "make", "docker", "terraform", "nix", "go-mod")
)


@lru_cache(maxsize=20_000)
def role_of(path: str) -> str:
    """What a file is for, by its path alone."""
    # Tests first: they may be in a folder that looks like translations.
    if _TEST.search(path) or _TEST_CLASS.search(path):
        return TEST
    if _VENDORED.search(path):
        return VENDORED
    if _TRANSLATION.search(path):
        return TRANSLATION
    if _CHANGELOG.search(path):
        return CHANGELOG
    language = language_of_path(path)
    if language in PROSE:
        return DOCUMENT
    if language == "css":
        return STYLE
    if _AUTOMATION.search(path):
        return AUTOMATION
    return CONFIGURATION if language in _CONFIGURATION_LANGUAGES else CODE


def role_of_chunk(path: str, symbol: str) -> str:
    """As `role_of`; where tests are in the same file, by the definition's name."""
    if path.endswith(".rs") and _RUST_TEST.search(symbol):
        return TEST
    return role_of(path)
