--- A client of `tether` for Neovim. It connects with `tether rpc`, so that the debug sessions of agents show in the status line,
--- can be joined, and are opened here when tether asks for that.
local dap = require("tether.dap")

local M = {
  --- The debug sessions of the workspace by id, as `debug/status` reports them.
  sessions = {},
  --- The open conversations of this client by number; with nvim-dap there are none.
  conversations = {},
}

local config = {
  --- How `tether` is run.
  command = { "tether" },
  --- The workspace; none: found upwards from the current folder.
  workspace = nil,
  --- Whether nvim-dap shows sessions, where it is installed.
  nvim_dap = true,
  --- Called with `(conversation, frame)` at every stop of a conversation of this client.
  on_stop = nil,
}
local client
local last_number = 0

local function say(text, level)
  vim.notify("tether: " .. text, level or vim.log.levels.INFO)
end

function M.setup(options)
  config = vim.tbl_extend("force", config, options or {})
end

local function command_line(...)
  local words = vim.list_extend({}, config.command)
  vim.list_extend(words, { ... })
  if config.workspace then
    vim.list_extend(words, { "--workspace", config.workspace })
  end
  return words
end

local function handle_notification(method, params)
  if method == "debug/didChangeState" then
    M.sessions[params.sessionId] = params
    vim.cmd.redrawstatus()
  end
end

--- The requests of tether: open a debug session on a port, and end one. The session's id is ours: its number.
local function handle_request(method, params)
  if method == "startDebugSession" then
    return { sessionId = M.open(params.host, params.port, "launch") }
  elseif method == "terminateDebugSession" then
    local conversation = M.conversations[params.sessionId]
    if conversation then
      conversation:leave()
    end
    return conversation ~= nil
  end
  return nil, { code = -32601, message = "there is no method " .. method }
end

--- Connects to the supervisor, if that is not done yet, and calls back.
function M.connect(callback)
  if client and not client.is_closing() then
    return callback()
  end
  client = vim.lsp.rpc.start(command_line("rpc"), {
    notification = handle_notification,
    server_request = handle_request,
    on_error = function(_, cause)
      say(vim.inspect(cause), vim.log.levels.ERROR)
    end,
    on_exit = function()
      client, M.sessions = nil, {}
    end,
  })
  local version = vim.version()
  local editor = {
    name = "Neovim",
    version = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
    role = "editor",
    capabilities = { startDebugSession = true, terminateDebugSession = true },
  }
  client.request("initialize", editor, function(failure)
    if failure then
      return say(failure.message, vim.log.levels.ERROR)
    end
    M.request("debug/status", {}, function(status)
      for _, session in ipairs(status.sessions or { status.session or status }) do
        if session.sessionId then
          M.sessions[session.sessionId] = session
        end
      end
      callback()
    end)
  end)
end

--- Calls a method of tether, and `callback` with its result; an error is shown.
function M.request(method, params, callback)
  M.connect(function()
    client.request(method, params or vim.empty_dict(), function(failure, result)
      vim.schedule(function()
        if failure then
          say(failure.message, vim.log.levels.ERROR)
        elseif callback then
          callback(result)
        end
      end)
    end)
  end)
end

--- Opens a debug session on a port: in nvim-dap, or in the conversation of this client, whose number it returns.
function M.open(host, port, request, arguments)
  last_number = last_number + 1
  local number = last_number
  local has_nvim_dap, nvim_dap = pcall(require, "dap")
  if config.nvim_dap and has_nvim_dap then
    nvim_dap.adapters.tether_port = function(callback, wanted)
      callback({ type = "server", host = wanted.host, port = wanted.port })
    end
    local wanted = { type = "tether_port", name = "tether", request = request, host = host, port = port }
    vim.schedule(function()
      nvim_dap.run(vim.tbl_extend("keep", wanted, arguments or {}))
    end)
    return number
  end
  M.conversations[number] = dap.connect(host, port, {
    request = request,
    arguments = arguments,
    on_stop = function(conversation, frame, body)
      if config.on_stop then
        config.on_stop(conversation, frame, body)
      end
    end,
    on_close = function()
      M.conversations[number] = nil
    end,
  })
  return number
end

local function open_port(method, params, request, callback)
  M.request(method, params, function(result)
    if not result.success then
      return say(method .. ": no port could be opened; `tether logs` says why", vim.log.levels.ERROR)
    end
    local number = M.open("127.0.0.1", result.port, request)
    if callback then
      callback(M.conversations[number])
    end
  end)
end

--- Debugs a program, a project file or a configuration of launch.json: in this editor alone, and ends with it.
function M.start(params, callback)
  if type(params) == "string" then
    params = { targetPath = params }
  end
  open_port("debugger/start", params, "launch", callback)
end

--- Joins a session that is there, such as an agent's; without an id the only one. `callback` gets the conversation.
function M.join(session, callback)
  open_port("debugger/join", { sessionId = session or M.only_session() }, "attach", callback)
end

--- The id of the session that has not ended, if there is exactly one.
function M.only_session()
  local found
  for id, session in pairs(M.sessions) do
    if session.state ~= "TERMINATED" and session.state ~= "DISCONNECTED" then
      if found then
        return nil
      end
      found = id
    end
  end
  return found
end

--- The conversation of this client that is shown: the newest.
function M.current()
  local newest
  for number in pairs(M.conversations) do
    newest = math.max(newest or number, number)
  end
  local conversation = M.conversations[newest]
  return conversation and (conversation.child or conversation)
end

--- Sets a breakpoint of this editor on a line, or removes it, and sends that to the open conversations.
function M.toggle_breakpoint(file, line)
  local lines = dap.breakpoints[file] or {}
  lines[line] = not lines[line] or nil
  dap.breakpoints[file] = lines
  for _, conversation in pairs(M.conversations) do
    conversation:send_breakpoints(file)
  end
end

--- For the status line: each session that has not ended, and who has resumed it last while it runs.
function M.status()
  local texts = {}
  for id, session in pairs(M.sessions) do
    if session.state ~= "TERMINATED" and session.state ~= "DISCONNECTED" then
      local by = session.state == "RUNNING" and session.resumedBy and (", resumed by " .. session.resumedBy) or ""
      table.insert(texts, ("%s %s %s%s"):format(id, session.name, session.state:lower(), by))
    end
  end
  table.sort(texts)
  return table.concat(texts, " | ")
end

return M
