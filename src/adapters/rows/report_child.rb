# Loaded by RubyGems in each Ruby process that a debugged program starts, as "rubygems/defaults/ruby", which RubyGems does
# without where there is none: reports the process, which is not debugged, over the pipe of the session.
begin
  command = File.binread("/proc/self/cmdline", 3000).tr("\n", " ")
  # Without a reader this fails at once, and so does a pipe that is full.
  File.open(File.join(__dir__, "../../../children"), File::WRONLY | File::NONBLOCK) do |pipe|
    pipe.syswrite("#{Process.pid}\0#{command}\n".b)
  end
rescue StandardError
  # The session is gone.
end
