namespace N {
  class Car {
    public int Drive() {
      return 1;
    }
  }
}
