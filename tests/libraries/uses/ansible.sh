cat >play.yaml <<'YAML'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - copy: {content: "made {{ 6 * 7 }}\n", dest: out.txt}
    - command: cat out.txt
      register: got
    - debug: {var: got.stdout}
YAML
ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=false ansible-playbook -i localhost, play.yaml | grep -E 'got.stdout|ok='
