# Loaded by a program that rdbg debugs, before its first line. The children that it forks share its connection, and each request is
# read by one of these processes only: a breakpoint that is set after the fork would hold in that one. With this, the process that
# has read a request for breakpoints sends it to the others, each of which has a pipe in the session's folder. And the stop of a
# child names its process.
require 'debug/server_dap'

module DevtetherSharedBreakpoints
  FOLDER = File.join(__dir__, '..')
  PROGRAM = Process.pid

  def recv_request
    pipe = own_breakpoint_pipe
    # Without the session's folder, as rdbg does it.
    return super unless pipe

    loop do
      IO.select([@sock, pipe])
      set_sent_breakpoints(pipe)
      request = @session.process_group.sync { read_shared_request if IO.select([@sock], nil, nil, 0) }
      return request == :closed ? nil : request if request
    end
  end

  def send_event(name, **body)
    body[:threadName] = "#{body[:threadId]} of the child process #{Process.pid}" if name == 'stopped' && Process.pid != PROGRAM
    super
  end

  private

  # Of this process: a child has its own. Open for writing, too, so that it has no end.
  def own_breakpoint_pipe
    return @breakpoint_pipe if @breakpoint_pipe_owner == Process.pid

    @breakpoint_pipe_owner = Process.pid
    path = File.join(FOLDER, "breakpoints.#{Process.pid}")
    File.mkfifo(path, 0o600) unless File.exist?(path)
    @breakpoint_pipe = File.open(path, File::RDWR | File::NONBLOCK)
  rescue SystemCallError
    @breakpoint_pipe = nil
  end

  def read_shared_request
    header = @sock.gets
    return :closed unless header
    raise "unrecognized line: #{header}" unless header =~ /Content-Length: (\d+)/

    @sock.read(2)
    text = @sock.read($1.to_i)
    request = JSON.parse(text)
    send_breakpoints(text) if request['command'] == 'setBreakpoints'
    request
  end

  def send_breakpoints(text)
    Dir.glob(File.join(FOLDER, 'breakpoints.*')).each do |path|
      next if path.end_with?(".#{Process.pid}")

      File.open(path, File::WRONLY | File::NONBLOCK) { |pipe| pipe.write([text.bytesize].pack('N') + text) }
    rescue SystemCallError
      # That process has ended.
    end
  end

  def set_sent_breakpoints(pipe)
    while (size = pipe.read_nonblock(4, exception: false)).is_a?(String)
      arguments = JSON.parse(pipe.read(size.unpack1('N')))['arguments']
      path = arguments.dig('source', 'path')
      # Older versions keep the earlier ones.
      @session.clear_line_breakpoints(path) if @session.respond_to?(:clear_line_breakpoints)
      arguments['breakpoints'].each do |it|
        condition = it['condition'] ? { cond: it['condition'] } : {}
        @session.add_line_breakpoint(path, it['line'], **condition)
      end
    end
  end
end

DEBUGGER__::UI_DAP.prepend(DevtetherSharedBreakpoints)
