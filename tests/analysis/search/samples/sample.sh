set -e

deploy() {
  echo hi
}
