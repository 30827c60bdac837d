#include <x.h>

static int *add(int a, int b)
{
  return a + b;
}

struct point {
  int x;
};
