// Says hello from a command, from the status bar and in an output channel.
import * as vscode from 'vscode';

const GREETING = 'Hello from the tether';

export function activate(context: vscode.ExtensionContext) {
	const log = vscode.window.createOutputChannel('Hello', { log: true });

	const hello = vscode.commands.registerCommand('hello-extension.hello', () => {
		log.info(GREETING);
		vscode.window.showInformationMessage(GREETING);
	});

	const status = vscode.window.createStatusBarItem('status', vscode.StatusBarAlignment.Left);
	status.text = `$(link) ${GREETING}`;
	status.tooltip = 'Click to be greeted';
	status.command = 'hello-extension.hello';
	status.show();

	context.subscriptions.push(log, hello, status);
	log.info('activated');
}

export function deactivate() {}
