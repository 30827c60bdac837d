<?php
class Mail {
  public function send() {
    return 1;
  }
}
