namespace geo {
class Point {
 public:
  int x() const {
    return 1;
  }
};
}
