--- The commands of the client. With nvim-dap installed its own commands step and show variables; these start and join.
local function tether()
  return require("tether")
end

local function current(use)
  local conversation = tether().current()
  if conversation then
    use(conversation)
  else
    vim.notify("tether: no session is joined; :TetherJoin joins one", vim.log.levels.WARN)
  end
end

local steps = { over = "next", into = "stepIn", out = "stepOut" }

vim.api.nvim_create_user_command("TetherStart", function(given)
  tether().start(given.args ~= "" and given.args or vim.api.nvim_buf_get_name(0))
end, { nargs = "?", complete = "file", desc = "Debug a program, by default the current file" })

vim.api.nvim_create_user_command("TetherJoin", function(given)
  tether().connect(function()
    tether().join(given.args ~= "" and given.args or nil)
  end)
end, { nargs = "?", desc = "Join a debug session, by default the only one" })

vim.api.nvim_create_user_command("TetherLeave", function()
  current(function(conversation)
    conversation:leave()
  end)
end, { desc = "Leave the debug session; it continues" })

vim.api.nvim_create_user_command("TetherContinue", function()
  current(function(conversation)
    conversation:resume("continue")
  end)
end, { desc = "Resume the program" })

vim.api.nvim_create_user_command("TetherStep", function(given)
  current(function(conversation)
    conversation:resume(steps[given.args] or steps.over)
  end)
end, {
  nargs = "?",
  complete = function()
    return vim.tbl_keys(steps)
  end,
  desc = "Step over, into or out",
})

vim.api.nvim_create_user_command("TetherPause", function()
  current(function(conversation)
    conversation:pause()
  end)
end, { desc = "Stop the program" })

vim.api.nvim_create_user_command("TetherBreak", function()
  tether().toggle_breakpoint(vim.api.nvim_buf_get_name(0), vim.api.nvim_win_get_cursor(0)[1])
end, { desc = "Set or remove a breakpoint on this line" })

vim.api.nvim_create_user_command("TetherLocals", function()
  current(function(conversation)
    conversation:locals(function(variables)
      local lines = {}
      for _, variable in ipairs(variables) do
        table.insert(lines, { variable.name .. " = " .. variable.value .. "\n" })
      end
      vim.api.nvim_echo(lines, false, {})
    end)
  end)
end, { desc = "Show the variables where the program is stopped" })

vim.api.nvim_create_user_command("TetherEval", function(given)
  current(function(conversation)
    conversation:evaluate(given.args, function(failure, result)
      vim.notify(failure or result, failure and vim.log.levels.ERROR or vim.log.levels.INFO)
    end)
  end)
end, { nargs = 1, desc = "Evaluate where the program is stopped" })
