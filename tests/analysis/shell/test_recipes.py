"""What a task of a runner comes down to, by the file of the repository that says it."""

import pytest

from holdfast.analysis.shell.command_effects import names_to_resolve, read_acts
from holdfast.analysis.shell.recipes import find_meaning

GRUNT = """module.exports = function (grunt) {
  grunt.initConfig({
    shell: {
      deploy: { command: 'make deploy' },
      lint: { command: 'eslint src' }
    }
  });
  grunt.registerTask('ship', ['shell:deploy']);
  grunt.registerTask('test', ['shell:lint']);
  grunt.registerTask('save', 'commits', function () { require('child_process').execSync('git commit -am x'); });
  grunt.registerTask('default', ['test']);
};
"""
GULP = """const { series, task } = require('gulp');
const { execSync } = require('child_process');
function build(cb) { execSync('tsc -p .'); cb(); }
async function deploy() {
  execSync('make deploy');
}
exports.build = build;
exports.ship = series(build, deploy);
exports.default = build;
task('tag', () => exec('git tag v1'));
"""
EDITOR = """{
  // tasks
  "version": "2.0.0",
  "tasks": [
    {"label": "ship it", "type": "shell", "command": "make", "args": ["deploy"],},
    {"label": "all", "dependsOn": ["ship it"]},
    {"type": "npm", "script": "pub"},
  ]
}
"""
FILES = {"/p/Gruntfile.js": GRUNT, "/p/gulpfile.js": GULP, "/p/.vscode/tasks.json": EDITOR}
FILES["/p/Rakefile"] = (
    "require 'rake'\n\ntask :ship do\n  sh 'make deploy'\nend\n\ntask :test do\n  sh 'rspec spec'\nend\n"
)
FILES["/p/package.json"] = '{"scripts": {"pub": "make deploy"}}'


def programs(command: str) -> tuple[str, ...]:
    """As the gates resolve it: name by name, until nothing new is named."""
    meanings: dict[str, str] = {}
    for _ in range(4):
        acts = read_acts(command, "/p", meanings)
        for text in [command, *meanings.values()]:
            meanings |= {key: found for key in names_to_resolve(text, "/p") if (found := find_meaning(key, FILES))}
    return acts.readings


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("npx grunt ship", "make deploy"), ("grunt test", "eslint src"), ("grunt", "eslint src"),
        ("npx grunt save", "git commit -am x"), ("npx gulp ship", "make deploy"), ("gulp", "tsc -p ."),
        ("rake ship", "make deploy"), ("rake test", "rspec spec"),
        ("editor-task 'ship it'", "make deploy"), ("editor-task all", "make deploy"), ("editor-task pub", "make deploy"),
    ],
)  # fmt: skip
def test_a_task_is_what_it_runs(command: str, runs: str) -> None:
    assert runs in programs(command)


@pytest.mark.parametrize(
    "command", ["npx grunt test", "rake test", "gulp build", "gulp", "grunt --help", "editor-task other"]
)
def test_a_task_is_not_what_its_neighbours_run(command: str) -> None:
    assert not {"make deploy", "git commit -am x"} & set(programs(command))
