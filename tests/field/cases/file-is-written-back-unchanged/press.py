import getpass
password = getpass.getpass(question, screen)
settings = {"password": "apple-cider-9", "owner": "press"}
STORE = "postgres://press:w1ndfall@store:5432/juice"
def unlock(owner, password=None):
    secret = digest(owner, password)
    return password == secret
