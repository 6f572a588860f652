//! Programs of the stories. Lines are found by the marker at their end.

/// Prints twice each of 1, 2, 3, and ends with code 7. So do all of [`crate::languages`].
pub const PYTHON: &str = "\
import sys

def total(order):
    amount = order * 2
    return amount  # STOP

for order in range(1, 4):
    print('total', total(order), flush=True)  # CALL
if len(sys.argv) > 1:
    print(sys.argv)  # ARGUED
sys.exit(7)  # END
";
pub const NODE: &str = "\
function total(order) {
  let amount = order * 2;
  const tax = 0; // STOP
  return amount + tax;
}
for (let order = 1; order < 4; order++) {
  console.log('total', total(order)); // CALL
}
if (process.argv.length > 2) {
  console.log(process.argv); // ARGUED
}
process.exitCode = 7; // END
";
pub const JAVA: &str = "\
public class App {
  static int total(int order) {
    int amount = order * 2;
    return amount; // STOP
  }
  public static void main(String[] arguments) {
    for (int order = 1; order < 4; order++) {
      System.out.println(\"total \" + total(order)); // CALL
    }
    System.exit(7);
  }
}
";
pub const NATIVE: &str = "\
#include <stdio.h>
int total(int order) {
  int amount = order * 2;
  return amount; // STOP
}
int main(void) {
  for (int order = 1; order < 4; order++) {
    printf(\"total %d\\n\", total(order)); // CALL
  }
  return 7;
}
";
pub const GO: &str = "\
package main

import (
	\"fmt\"
	\"os\"
)

func total(order int) int {
	amount := order * 2
	fmt.Print() // STOP
	return amount
}

func main() {
	for order := 1; order < 4; order++ {
		fmt.Println(\"total\", total(order)) // CALL
	}
	os.Exit(7)
}
";
pub const GO_MODULE: (&str, &str) = ("go.mod", "module example.com/app\n\ngo 1.19\n");
pub const RUBY: &str = "\
$stdout.sync = true
def total(order)
  amount = order * 2
  amount # STOP
end
(1..3).each do |order|
  puts \"total #{total(order)}\" # CALL
end
exit 7
";

/// Passes its line every few milliseconds until it is ended, and counts.
pub const NODE_LOOP: &str = "\
let turns = 0;
function turn() {
  turns += 1;
  globalThis.turns = turns; // TURN
}
setInterval(turn, 5);
console.log('up');
";
pub const PYTHON_LOOP: &str = "\
import time
turns = 0
print('up', flush=True)
while True:
    turns += 1
    time.sleep(0.005)  # TURN
";
