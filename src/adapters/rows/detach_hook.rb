# Evaluated in a program that rdbg 1.4 debugs. When its client leaves, rdbg 1.4 keeps the breakpoints, and a stop ends the program:
# nothing can be written to the client, or the lost connection counts as `kill!`. Children by `fork` use the closed connection.
# With this, rdbg removes its breakpoints and goes on from every stop. Newer versions remove their breakpoints by themselves.
#
# Constants start with `::`, for a frame of a `BasicObject`. No lock may be taken: it may be a signal handler that is evaluated in.
::DEBUGGER__::SESSION.then do |session|
  ui = session.instance_variable_get(:@ui)
  next :ready if session.respond_to?(:clear_all_breakpoints) || ui.respond_to?(:leave_program)

  session.singleton_class.prepend(::Module.new do
    # A second thread that stops, or what is evaluated in the first one, would end the program: it goes on with the first.
    def process_event(event)
      client, _, kind, _, reason = event
      return super unless kind == :suspend && reason != :replay && in_subsession?

      client << :continue if client.equal?(@tc)
    end
  end)
  ui.instance_variable_set(:@debugged_pid, ::Process.pid)
  ui.instance_variable_set(:@debugger_dir, ::File.dirname(session.method(:leave_subsession).source_location.first))
  ui.singleton_class.prepend(::Module.new do
    # A client connects.
    def dap_setup(bytes)
      @has_left = @ends_program = false
      super
    end

    def recv_request
      request = super
      if request && request['command'] == 'disconnect'
        @ends_program = request.dig('arguments', 'terminateDebuggee')
        leave_program unless @ends_program
      end
      request
    rescue ::DEBUGGER__::UI_ServerBase::Terminate
      raise
    rescue ::StandardError
      # The client is gone. rdbg would print the error into the program's output.
      nil
    end

    # The session's thread ends, and the program with it, if this raises.
    def send(**message)
      super unless @has_left && message[:type] == 'event'
    rescue ::SystemCallError, ::IOError, ::NoMethodError
      nil
    end

    # The next command of a program that is stopped.
    def readline(prompt)
      return super if @repl || @ends_program
      return 'continue' if @has_left

      queue = @q_msg
      queue ? queue.pop || 'continue' : 'continue'
    end

    # The connection has ended.
    def cleanup_reader
      return super if @ends_program

      leave_program
      close_connection
      disable_breakpoints
      return @sock_for_fork = nil if keeps_listening?

      stop_listening
    end

    # Of a program that was launched, whose socket is private, or of a child that shared the connection.
    def stop_listening
      %i[@tp_load_script @tp_thread_begin].each { |it| @session.instance_variable_get(it).disable }
      fork = ::DEBUGGER__::ForkInterceptor
      fork.instance_methods(false).each { |name| fork.remove_method(name) }
      # Not even where the socket cannot be removed, since its folder is gone, does the end of this thread end the program.
      ::Thread.current.abort_on_exception = ::Thread.current.report_on_exception = false
      raise ::DEBUGGER__::UI_ServerBase::Terminate
    end

    # Nothing stops from now on. Lines are still traced until no thread is in a stop: Ruby 3.1 would free what the stop uses.
    def leave_program
      @has_left = true
      breakpoints = @session.instance_variable_get(:@bps)
      exceptions, others = breakpoints.values.partition { |it| ::DEBUGGER__::CatchBreakpoint === it }
      breakpoints.clear
      exceptions.each(&:delete)
      others.each do |it|
        it.instance_variable_set(:@cond, nil)
        it.define_singleton_method(:suspend) { nil }
      end
      (@left_breakpoints ||= []).concat(others)
      @session.instance_variable_get(:@th_clients).values.each(&:deactivate)
    end

    # Disables what is left once no thread is in a stop. In vain, it costs some time at each hit.
    def disable_breakpoints
      200.times do
        break if ::Thread.list.none? { |it| in_stop?(it) }

        sleep 0.01
      end
      return if ::Thread.list.any? { |it| in_stop?(it) }

      @left_breakpoints.each(&:delete)
      @left_breakpoints.clear
    end

    def in_stop?(thread)
      frames = thread.backtrace_locations || []
      frames.any? { |it| it.path.start_with?(@debugger_dir) && %w[thread_stopper step_tp suspend].include?(it.base_label) }
    end

    def close_connection
      ::DEBUGGER__.warn 'Disconnected.'
      @sock&.close
      @sock = nil
      @q_msg&.close
      @q_ans&.close
      @q_msg = @q_ans = nil
    rescue ::IOError, ::SystemCallError
      nil
    end

    def keeps_listening?
      ::DEBUGGER__::UI_TcpServer === self && @debugged_pid == ::Process.pid
    end
  end)
  :ready
end
