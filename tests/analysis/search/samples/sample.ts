export interface Shape {
  area(): number
}

export class Circle implements Shape {
  private r = 1

  area(): number {
    return this.r
  }
}
