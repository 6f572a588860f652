-- Drives the client of examples/nvim in a headless Neovim, and prints what it sees, one JSON object a line.
local client_folder, program, workspace, mode, file, line = unpack(_G.arg)
vim.opt.runtimepath:append(client_folder)
vim.cmd.runtime("plugin/tether.lua")

local tether = require("tether")
local stops = {}
tether.setup({
  command = { program },
  workspace = workspace,
  on_stop = function(conversation, frame)
    conversation:locals(function(variables)
      local values = {}
      for _, variable in ipairs(variables) do
        values[variable.name] = variable.value
      end
      table.insert(stops, {
        line = frame.line,
        locals = values,
        cursor = vim.api.nvim_win_get_cursor(0)[1],
        buffer = vim.api.nvim_buf_get_name(0),
        status = tether.status(),
      })
    end)
  end,
})

local function report(object)
  io.stdout:write(vim.json.encode(object) .. "\n")
  io.stdout:flush()
end

local function wait_for(what, check)
  if not vim.wait(90000, check, 5) then
    report({ failed = what, stops = #stops })
    os.exit(1)
  end
end

local proceeds = 0
local stdin = assert(vim.uv.new_pipe())
assert(stdin:open(0))
stdin:read_start(function(_, chunk)
  local _, lines = (chunk or ""):gsub("\n", "\n")
  proceeds = proceeds + lines
end)

-- Waits for a line of the test.
local function wait_to_proceed()
  wait_for("the test lets it go on", function()
    return proceeds > 0
  end)
  proceeds = proceeds - 1
end

local function next_stop(count)
  wait_for("stop " .. count, function()
    return #stops >= count
  end)
  local stop = stops[count]
  wait_for("the cursor on line " .. stop.line, function()
    return vim.api.nvim_win_get_cursor(0)[1] == stop.line
  end)
  stop.cursor, stop.buffer = stop.line, vim.api.nvim_buf_get_name(0)
  report(stop)
end

if mode == "join" then
  vim.cmd("TetherJoin")
  next_stop(1)
  wait_to_proceed()
  vim.cmd("TetherStep over")
  next_stop(2)
  wait_to_proceed()
  tether.toggle_breakpoint(file, tonumber(line))
  vim.cmd("TetherContinue")
  next_stop(3)
  wait_to_proceed()
  vim.cmd("TetherLeave")
elseif mode == "start" then
  tether.toggle_breakpoint(file, tonumber(line))
  vim.cmd("TetherStart " .. vim.fn.fnameescape(file))
  next_stop(1)
  vim.cmd("TetherLeave")
elseif mode == "open" then
  -- tether requests `startDebugSession` of this editor.
  tether.toggle_breakpoint(file, tonumber(line))
  local session
  tether.request("debugger/open", { targetPath = file }, function(result)
    session = result.sessionId
  end)
  next_stop(1)
  wait_for("its session id", function()
    return session ~= nil
  end)
  report({ session = session })
  local closed
  tether.request("debugger/close", { sessionId = session }, function(result)
    closed = result.confirmed
  end)
  wait_for("the answer to the close", function()
    return closed ~= nil
  end)
  report({ closed = closed })
end
wait_for("the end", function()
  return next(tether.conversations) == nil
end)
report({ done = true })
