--- A small DAP client: one conversation over one TCP connection. It shows where the program has stopped, and can step, read
--- variables and set breakpoints. With nvim-dap installed it is not used.
local M = {}

--- Breakpoints of this editor: by file, the set of lines.
M.breakpoints = {}

local namespace = vim.api.nvim_create_namespace("tether")
local Conversation = {}
Conversation.__index = Conversation

local function say(text, level)
  vim.notify("tether: " .. text, level or vim.log.levels.INFO)
end

--- Opens a conversation. `options.request` is `launch` or `attach`, with `options.arguments`; `options.on_event(conversation,
--- event, body)` sees every event after it was handled here; `options.on_stop(conversation, frame)` every stop.
function M.connect(host, port, options)
  local self = setmetatable({
    host = host,
    port = port,
    options = options or {},
    seq = 0,
    pending = {},
    received = "",
    capabilities = {},
    is_open = true,
  }, Conversation)
  self.socket = assert(vim.uv.new_tcp())
  self.socket:connect(host, port, vim.schedule_wrap(function(cause)
    if cause then
      return self:close("cannot connect to port " .. port .. ": " .. cause)
    end
    self.socket:nodelay(true)
    self.socket:read_start(vim.schedule_wrap(function(failure, chunk)
      if failure or not chunk then
        return self:close(failure)
      end
      self:receive(chunk)
    end))
    self:initialize()
  end))
  return self
end

--- Sends a request; `callback(error, body)` gets the text of an error, or the body of the response.
function Conversation:request(command, arguments, callback)
  self.seq = self.seq + 1
  self.pending[self.seq] = callback or function(failure)
    if failure then
      say(command .. ": " .. failure, vim.log.levels.ERROR)
    end
  end
  local message = { seq = self.seq, type = "request", command = command, arguments = arguments or vim.empty_dict() }
  self:send(message)
end

function Conversation:send(message)
  if self.is_open then
    local body = vim.json.encode(message)
    self.socket:write("Content-Length: " .. #body .. "\r\n\r\n" .. body)
  end
end

function Conversation:receive(chunk)
  self.received = self.received .. chunk
  while true do
    local head, last = self.received:find("\r\n\r\n", 1, true)
    if not head then
      return
    end
    local length = tonumber(self.received:sub(1, head):lower():match("content%-length:%s*(%d+)"))
    if not length then
      return self:close("a message has no length")
    end
    if #self.received < last + length then
      return
    end
    local body = self.received:sub(last + 1, last + length)
    self.received = self.received:sub(last + length + 1)
    self:dispatch(vim.json.decode(body, { luanil = { object = true, array = true } }))
  end
end

function Conversation:dispatch(message)
  if message.type == "response" then
    local callback = self.pending[message.request_seq]
    self.pending[message.request_seq] = nil
    if callback then
      local failure = not message.success and (vim.tbl_get(message, "body", "error", "format") or message.message or "failed")
      callback(failure or nil, message.body or {})
    end
  elseif message.type == "event" then
    self:handle_event(message.event, message.body or {})
  elseif message.type == "request" then
    self:handle_request(message)
  end
end

--- A request of the adapter: another target of the same session is another conversation with the same port.
function Conversation:handle_request(message)
  local is_child = message.command == "startDebugging"
  self:send({ seq = 0, type = "response", request_seq = message.seq, command = message.command, success = is_child })
  if is_child then
    local arguments = message.arguments
    local options = vim.tbl_extend("force", self.options, { request = arguments.request, arguments = arguments.configuration })
    self.child = M.connect(self.host, self.port, options)
  end
end

function Conversation:initialize()
  local editor = {
    clientID = "neovim",
    clientName = "Neovim",
    adapterID = "tether",
    linesStartAt1 = true,
    columnsStartAt1 = true,
    pathFormat = "path",
    supportsVariableType = true,
    supportsInvalidatedEvent = true,
    supportsStartDebuggingRequest = true,
  }
  self:request("initialize", editor, function(failure, capabilities)
    if failure then
      return self:close(failure)
    end
    self.capabilities = capabilities
    local request = self.options.request or "attach"
    self:request(request, self.options.arguments, function(refusal)
      if refusal then
        self:close(request .. ": " .. refusal)
      end
    end)
  end)
end

function Conversation:handle_event(event, body)
  if event == "initialized" then
    self:configure()
  elseif event == "capabilities" then
    self.capabilities = vim.tbl_extend("force", self.capabilities, body.capabilities or {})
  elseif event == "stopped" then
    self:show_stop(body)
  elseif event == "continued" then
    self:forget_stop()
  elseif event == "output" and body.category ~= "telemetry" then
    vim.api.nvim_echo({ { (body.output:gsub("\n$", "")) } }, true, {})
  elseif event == "terminated" then
    self:forget_stop()
    self:leave()
  end
  if self.options.on_event then
    self.options.on_event(self, event, body)
  end
end

function Conversation:configure()
  for file in pairs(M.breakpoints) do
    self:send_breakpoints(file)
  end
  local filters = {}
  for _, filter in ipairs(self.capabilities.exceptionBreakpointFilters or {}) do
    if filter.default then
      table.insert(filters, filter.filter)
    end
  end
  self:request("setExceptionBreakpoints", { filters = filters }, function()
    self:request("configurationDone")
  end)
end

--- Sends this editor's breakpoints in a file; those of others stay.
function Conversation:send_breakpoints(file, callback)
  local breakpoints = {}
  for line in pairs(M.breakpoints[file] or {}) do
    table.insert(breakpoints, { line = line })
  end
  self:request("setBreakpoints", { source = { path = file }, breakpoints = breakpoints }, callback)
end

function Conversation:show_stop(body)
  self.thread = body.threadId
  self:request("stackTrace", { threadId = body.threadId, levels = 20 }, function(failure, stack)
    if failure then
      return say(failure, vim.log.levels.WARN)
    end
    self.frames = stack.stackFrames
    self.frame = self.frames[1]
    for _, frame in ipairs(self.frames) do
      if vim.tbl_get(frame, "source", "path") and vim.uv.fs_stat(frame.source.path) then
        self.frame = frame
        self:mark_line(frame)
        break
      end
    end
    if self.options.on_stop then
      self.options.on_stop(self, self.frame, body)
    end
  end)
end

function Conversation:mark_line(frame)
  self:unmark_line()
  local buffer = vim.fn.bufadd(frame.source.path)
  vim.fn.bufload(buffer)
  vim.bo[buffer].buflisted = true
  vim.api.nvim_win_set_buf(0, buffer)
  local line = math.min(frame.line, vim.api.nvim_buf_line_count(buffer))
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  vim.api.nvim_buf_set_extmark(buffer, namespace, line - 1, 0, { sign_text = "▶", line_hl_group = "CursorLine" })
  self.marked = buffer
end

function Conversation:unmark_line()
  if self.marked and vim.api.nvim_buf_is_valid(self.marked) then
    vim.api.nvim_buf_clear_namespace(self.marked, namespace, 0, -1)
  end
  self.marked = nil
end

function Conversation:forget_stop()
  self.thread, self.frame, self.frames = nil, nil, nil
  self:unmark_line()
end

--- `next`, `stepIn`, `stepOut`, `continue`: the error says who has resumed the program meanwhile.
function Conversation:resume(command, callback)
  if not self.thread then
    return say("the program is not stopped", vim.log.levels.WARN)
  end
  self:request(command, { threadId = self.thread }, callback)
end

--- Stops a thread of the running program.
function Conversation:pause(callback)
  self:request("threads", nil, function(failure, body)
    local thread = not failure and body.threads[1]
    if thread then
      self:request("pause", { threadId = thread.id }, callback)
    else
      say(failure or "the program has no threads yet", vim.log.levels.WARN)
    end
  end)
end

--- The variables of the top frame: `callback(list)`, each with `name` and `value`.
function Conversation:locals(callback)
  if not self.frame then
    return callback({})
  end
  self:request("scopes", { frameId = self.frame.id }, function(failure, body)
    local scopes = failure and {} or body.scopes
    local found, open = {}, 0
    for _, scope in ipairs(scopes) do
      if not scope.expensive then
        open = open + 1
        self:request("variables", { variablesReference = scope.variablesReference }, function(_, answer)
          vim.list_extend(found, answer.variables or {})
          open = open - 1
          if open == 0 then
            callback(found)
          end
        end)
      end
    end
    if open == 0 then
      callback(found)
    end
  end)
end

--- Evaluates in the top frame: `callback(error, result)`.
function Conversation:evaluate(expression, callback)
  local arguments = { expression = expression, context = "repl", frameId = self.frame and self.frame.id }
  self:request("evaluate", arguments, function(failure, body)
    callback(failure, body.result)
  end)
end

--- Leaves the session; it continues.
function Conversation:leave(callback)
  if not self.is_open then
    return callback and callback()
  end
  self:request("disconnect", vim.empty_dict(), function()
    self:close()
    if callback then
      callback()
    end
  end)
end

function Conversation:close(reason)
  if not self.is_open then
    return
  end
  self.is_open = false
  self:forget_stop()
  if not self.socket:is_closing() then
    self.socket:close()
  end
  if reason then
    say(reason, vim.log.levels.ERROR)
  end
  if self.options.on_close then
    self.options.on_close(self, reason)
  end
end

return M
