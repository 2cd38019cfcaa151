printf 'FROM debian:latest\nRUN cd /tmp\n' >Dockerfile
hadolint --no-color Dockerfile || echo "status $?"
