#!/usr/bin/env bash
# test-unit 3.5.7 beside minitest 5.17.0 (Debian 12: ruby-test-unit 3.5.7-1, ruby-minitest 5.17.0-1): what a debugger sees of a failed
# assertion, by `TracePoint.new(:raise)`, by which rdbg's `catch` works.
#
# Expected: a failed assertion raises one exception, once; a debugger that stops where it is raised stops once for each failed test.
# Seen: test-unit raises it where the assertion fails, catches it itself, and raises the same object again. At the first event `$!` is
# another one or nil, at the second it is that exception. minitest raises once.
# What follows: a stop at the class of the exception comes twice for one failure, the second time with nothing of the test on top.
#
# Needs: ruby 3.1 or newer, apt-get (Debian 12), dpkg. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get download -q=2 ruby-test-unit=3.5.7-1 ruby-power-assert=2.0.3-1 ruby-minitest=5.17.0-1 2> apt.log || { cat apt.log; exit 1; }
for package in *.deb; do dpkg -x "$package" installed; done
gems=$folder/installed/usr/share/rubygems-integration/all/gems

cat > watch.rb <<'RB'
$raised = []
TracePoint.new(:raise) do |event|
  raised = event.raised_exception
  $raised << [raised.object_id, $!.equal?(raised)] if raised.class.name == ENV['WATCHED']
end.enable
# Behind the runner, which runs the tests at the exit, too.
at_exit do
  objects, known = $raised.transpose
  puts "raised #{$raised.size} times, #{objects.uniq.size} exception; `$!` is it: #{known.join(', ')}"
end
RB
printf 'require "test/unit"\nclass OrdersTest < Test::Unit::TestCase\n  def test_total = assert_equal(42, 41)\nend\n' > unit.rb
printf 'require "minitest/autorun"\nclass OrdersTest < Minitest::Test\n  def test_total = assert_equal(42, 41)\nend\n' > mini.rb

check() {
  local found
  # The test fails, and so does its runner.
  WATCHED=$1 ruby -I"$gems/test-unit-3.5.7/lib" -I"$gems/power_assert-2.0.3/lib" -I"$gems/minitest-5.17.0/lib" -r./watch.rb "$2" > out || true
  found=$(grep '^raised' out)
  echo "$1: $found"
  [ "$found" = "$3" ]
}
check Test::Unit::AssertionFailedError unit.rb 'raised 2 times, 1 exception; `$!` is it: false, true'
check Minitest::Assertion mini.rb 'raised 1 times, 1 exception; `$!` is it: false'
