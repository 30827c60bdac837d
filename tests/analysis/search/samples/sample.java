class Cat {
  private int lives = 9;

  /** Says it. */
  String meow() {
    return "meow";
  }
}
