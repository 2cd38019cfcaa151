// The tools of the four earlier systems, by the names in their documents.
export const seeds = {
    s0: ['sandbox_initialize', 'sandbox_exec', 'write_file_sandbox', 'copy_file', 'copy_project', 'copy_file_from_sandbox', 'sandbox_stop',
        'clean_workspace', 'get_container_logs'],
    s1: ['list_sandboxes', 'create_sandbox', 'install_packages_in_sandbox', 'check_packages_installation_status', 'execute_python_code',
        'execute_terminal_command', 'upload_file_to_sandbox'],
    s2: ['initialize_sandbox', 'execute_code', 'stop_sandbox'],
    s3: ['create_python_env', 'execute_python_code', 'install_package_in_env', 'check_package_status'],
};
