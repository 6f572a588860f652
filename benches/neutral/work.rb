def low_bits(number)
  number & 3
end

def count(total)
  number = 0
  while number < 2_500_000
    total += low_bits(number) # BREAK
    number += 1
  end
end

def processor_ms
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :float_millisecond)
end

$stdout.sync = true
puts 'up'
sleep 0.02 until File.exist?('go')
before = processor_ms
4.times.map { |at| Thread.new { count(at) } }.each(&:join)
puts processor_ms - before
