// says hello
export function hello(name) {
  return name
}

export const bye = async () => {
  return 1
}
class Door {
  open() {
    return 1
  }
}
